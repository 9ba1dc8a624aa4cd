import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Clock;
import java.time.Duration;
import java.util.Optional;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;

/**
 * Takes one lock of ShedLock's again and again, and counts under it: as internal/adaptertest's workers do.
 * Arguments: the database, the table, the name, the TTL in ms, the table to count in, and whose clock: db, or
 * how many seconds the own one is ahead.
 */
public class Holder {
  public static void main(String[] args) throws Exception {
    JdbcTemplate db = new JdbcTemplate(new SingleConnectionDataSource(args[0], true));
    Configuration.Builder settings = Configuration.builder().withJdbcTemplate(db).withTableName(args[1]);
    if (args[5].equals("db")) {
      settings.usingDbTime();
    } else {
      ClockProvider.setClock(Clock.offset(Clock.systemUTC(), Duration.ofSeconds(Long.parseLong(args[5]))));
      settings.forceUtcTimeZone();
    }
    JdbcTemplateLockProvider locks = new JdbcTemplateLockProvider(settings.build());
    Duration ttl = Duration.ofMillis(Long.parseLong(args[3]));
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    while (true) {
      Optional<SimpleLock> lock =
          locks.lock(new LockConfiguration(ClockProvider.now(), args[2], ttl, Duration.ZERO));
      if (lock.isEmpty()) {
        Thread.sleep(5);
        if (System.in.available() > 0 && in.readLine() == null) {
          return;
        }
        continue;
      }
      long began = System.nanoTime();
      long n = db.queryForObject("SELECT coalesce(max(n), 0) FROM " + args[4], Long.class) + 1;
      System.out.println("worker: in 0");
      if (in.readLine() == null) {
        return;
      }
      lock = lock.get().extend(ttl, Duration.ZERO);
      if (lock.isEmpty()) {
        System.out.println("worker: refused it could not be extended after " + (System.nanoTime() - began) / 1e9 + " s");
        continue;
      }
      try {
        db.update(
            "INSERT INTO " + args[4] + " (n, token, by_process) VALUES (?, 0, ?)", n, ProcessHandle.current().pid());
        System.out.println("worker: out " + n);
      } catch (RuntimeException e) {
        System.out.println("worker: failed " + e);
      }
      lock.get().unlock();
    }
  }
}
