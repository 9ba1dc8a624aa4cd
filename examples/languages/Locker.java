import java.nio.file.*;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.*;

/** Locks a key beside Go processes: java -cp DRIVERS Locker.java JDBC-URL KEY [TTL-in-seconds [PREFIX]] reads "lock",
 *  "write SQL", "state" and "unlock", a line each, and the .sql files from its working directory. JDBC-URL:
 *  jdbc:postgresql:..., jdbc:mariadb:... (MySQL too) or jdbc:sqlite:FILE. The rules are in docs/protocol.md. */
public class Locker {
  static final long FREE = 2, EXPIRED = 5, MINE = 7, NONE = -1; // of the states that the statement "look" returns
  final String url, note = ProcessHandle.current().pid() + "/Locker.java\t";
  final Map<String, String> sql = new HashMap<>(); final Properties login = new Properties();
  final byte[] key; final long ttl, bucket;
  Connection lane, data; // each statement of the lane is a transaction
  byte[] owner = new byte[16]; volatile long token, deadline = System.nanoTime();
  Locker(String url, String key, double seconds, String prefix) throws Exception {
    if (key.indexOf('\uFFFD') >= 0) throw new IllegalArgumentException("a key that this locale cannot read: set LC_ALL=C.UTF-8");
    this.url = url; this.key = key.getBytes("UTF-8"); this.ttl = (long) (seconds * 1e9);
    int hash = 0x811c9dc5; for (byte b : this.key) hash = (hash ^ (b & 0xff)) * 16777619; this.bucket = hash & 0xff; // FNV-1a
    String file = url.startsWith("jdbc:s") ? "sqlite.sql" : url.startsWith("jdbc:m") ? "mysql.sql" : "postgres.sql";
    String text = Files.readString(Path.of(file)).replaceAll("\\browlock", prefix + "rowlock");
    for (String part : text.split("-- name: ")) sql.put(part.split("\n")[0], part.substring(part.indexOf('\n')));
    DriverManager.setLoginTimeout((int) Math.max(1, ttl / 4000000000L)); // PostgreSQL wants a property:
    login.setProperty("loginTimeout", "" + DriverManager.getLoginTimeout()); lane = open();
    Executors.newSingleThreadScheduledExecutor().scheduleWithFixedDelay(this::renew, 0, ttl / 5, TimeUnit.NANOSECONDS);
  }
  Connection open() throws SQLException {
    Connection c = DriverManager.getConnection(url, login);
    c.setNetworkTimeout(Runnable::run, (int) (ttl / 4000000)); // a server that has vanished never answers
    for (String setting : sql.get("session").split(";")) try (Statement s = c.createStatement()) { s.execute(setting); }
    long[] is = run(c, "schema-version"); if (is[0] < 3 || is[1] > 3) throw new SQLException("I know version 3 of the tables");
    return c;
  }
  /** Returns the first row's numbers, two at most, or {1} if a row was changed, or {NONE}. */
  long[] run(Connection c, String name) throws SQLException {
    Map<String, Object> values = Map.of("key", key, "owner", owner, "process", owner, "bucket", bucket, "note", note,
        "token", token, "ttl_us", ttl / 1000, "ttl_ms", ttl / 1000000, "extend_us", 0L);
    Matcher named = Pattern.compile("(?<!:):([a-z_]+)").matcher(sql.get(name));
    try (PreparedStatement s = c.prepareStatement(named.replaceAll("?"))) {
      named.reset();
      for (int n = 1; named.find(); n++) s.setObject(n, values.get(named.group(1)));
      ResultSet r = s.execute() ? s.getResultSet() : null;
      if (r == null || !r.next()) return new long[] {r == null && s.getUpdateCount() > 0 ? 1 : NONE};
      return new long[] {name.equals("release") ? 1 : r.getLong(1), name.matches("look|schema-version") ? r.getLong(2) : 0};
    }
  }
  synchronized long lock() throws Exception {
    for (Random random = new java.security.SecureRandom();; Thread.sleep(random.nextInt(10, 50))) {
      long sent = System.nanoTime();
      random.nextBytes(owner = new byte[16]); token = 0; // a new owner for each attempt, and no token yet
      try {
        long[] seen = run(lane == null ? lane = open() : lane, "look");
        if (seen[0] == NONE || seen[0] == FREE || seen[0] == EXPIRED) {
          run(lane, seen[0] == NONE ? "make" : "take");
          seen = run(lane, "look");
        }
        deadline = seen[0] == MINE ? sent + ttl / 10 * 8 : sent; // counted from before the request was sent
        if (held()) return token = seen[1];
      } catch (SQLException unknown) { // granted or not: give it up, whichever it is. Token 0 stands for any
        lane = open();
        run(lane, "release");
      }
    }
  }
  boolean held() { return deadline - System.nanoTime() > 0; }
  synchronized void renew() {
    long sent = System.nanoTime();
    try {
      if (lane == null) lane = open();
      if (held()) deadline = run(lane, "renew")[0] != NONE && held() ? sent + ttl / 10 * 8 : sent; // a loss is final
    } catch (SQLException unknown) { lane = null; } // the deadline stands, and the next try may find the lease alive
  }
  boolean write(String statement) throws SQLException {
    Connection c = data == null ? open() : data;
    data = null; // after an exception it is not used again: whether its COMMIT was done is unknown
    try (Statement s = c.createStatement()) {
      c.setAutoCommit(false);
      boolean held = run(c, "fence")[0] != NONE && held();
      if (held) { s.execute(statement); c.commit(); } else c.rollback();
      data = c;
      return held;
    } finally { if (data == null) c.close(); }
  }
  synchronized boolean unlock() throws Exception {
    deadline = System.nanoTime();
    return run(lane == null ? lane = open() : lane, "release")[0] != NONE;
  }
  public static void main(String[] a) throws Exception {
    Locker l = new Locker(a[0], a[1], Double.parseDouble(a.length > 2 ? a[2] : "30"), a.length > 3 ? a[3] : "");
    for (Scanner in = new Scanner(System.in); in.hasNextLine();) try {
      String[] line = in.nextLine().split(" ", 2);
      System.out.println(switch (line[0]) { case "lock" -> "token " + l.lock();
        case "unlock" -> l.unlock() ? "free" : "lost"; case "write" -> l.write(line[1]) ? "written" : "refused";
        default -> l.held() ? "held" : "lost"; });
    } catch (Exception failure) { System.out.println("failed: " + failure); }
    System.exit(0);
  }
}
