"""Locks a key beside Go processes: python3 locker.py DSN KEY [TTL-in-seconds [PREFIX]]

reads "lock", "write SQL", "state" and "unlock", a line each. DSN: postgresql://USER:PASSWORD@HOST/DB,
mysql://USER:PASSWORD@HOST/DB (MariaDB too) or sqlite:FILE. The rules are in docs/protocol.md."""
import functools, os, pathlib, random, re, sqlite3, sys, threading, time
from urllib.parse import unquote, urlsplit
import psycopg, pymysql

FREE, EXPIRED, MINE = 2, 5, 7  # of the states that the statement "look" returns

def connect(dsn, patience):  # in seconds, for an answer
    url = urlsplit(dsn)
    if url.scheme == "sqlite":
        connection = sqlite3.connect(dsn[7:], isolation_level=None, check_same_thread=False)
        connection.create_function("unixepoch", 1, lambda _: time.time())  # SQLite 3.42 has it by itself
        return connection, "sqlite.sql", r":\1"
    if url.scheme == "mysql":
        user = {"user": unquote(url.username), "password": unquote(url.password or ""), "database": url.path[1:]}
        return pymysql.connect(host=url.hostname, port=url.port or 3306, autocommit=True, read_timeout=patience,
            write_timeout=patience, connect_timeout=max(1, patience), **user), "mysql.sql", r"%(\1)s"
    return psycopg.connect(dsn, autocommit=True, connect_timeout=max(2, int(patience)), keepalives_idle=1,
        keepalives_interval=1, tcp_user_timeout=int(patience * 1000)), "postgres.sql", r"%(\1)s"

class Database:
    def __init__(self, dsn, prefix, patience):
        self.connection, file, parameter = connect(dsn, patience)
        text = re.sub(r"\browlock", prefix + "rowlock", pathlib.Path(__file__).with_name(file).read_text())
        parts = re.split(r"-- name: (.*)\n", re.sub(r"(?<!:):(\w+)", parameter, text))[1:]
        self.sql = dict(zip(parts[::2], parts[1::2]))
        for setting in self.sql["session"].split(";"): self.execute(setting)
        version, oldest = map(int, self.execute(self.sql["schema-version"])[0][:2])
        if not oldest <= 3 <= version: raise RuntimeError(f"tables of version {version}, for {oldest} and later: I am 3")
    def execute(self, sql, values=()):
        cursor = self.connection.cursor()
        cursor.execute(sql, values)
        return cursor.fetchall() if cursor.description else cursor.rowcount > 0

class Lock:
    def __init__(self, dsn, key, ttl=30.0, prefix=""):
        self.open, self.key, self.ttl = lambda: Database(dsn, prefix, ttl / 4), key.encode(), ttl
        self.deadline, self.ended, self.renewing = 0.0, threading.Event(), threading.Thread(target=int)
        self.renewing.start()
        self.lane, self.data = self.open(), self.open()  # each statement of the lane is a transaction
        self.bucket = functools.reduce(lambda h, b: (h ^ b) * 16777619 % 2**32, self.key, 2166136261) % 256
    def run(self, database, name, **values):
        return database.execute(database.sql[name], {
            "key": self.key, "owner": self.owner, "process": self.owner, "bucket": self.bucket,
            "ttl_us": int(self.ttl * 1e6), "ttl_ms": int(self.ttl * 1e3), "extend_us": 0,
            "note": f"{os.uname().nodename}/{os.getpid()}/locker.py\t", **values})
    def look(self):
        state, self.token = (self.run(self.lane, "look") or [(None, 0)])[0][:2]
        return state
    def lock(self):
        self.ended.set(), self.renewing.join()  # after a loss it still sleeps, and uses the lane later
        while True:  # after an exception, what an attempt may have left expires by itself
            self.owner, sent = os.urandom(16), time.monotonic()  # a new owner for each attempt
            try:
                if (state := self.look()) in (None, FREE, EXPIRED):
                    self.run(self.lane, "take" if state else "make")
                    state = self.look()
            except Exception:  # granted or not: give it up, whichever it is
                self.lane, state = self.open(), None
                self.run(self.lane, "release", token=0)
            if state == MINE and time.monotonic() < sent + 0.8 * self.ttl: break
            time.sleep(random.uniform(0.01, 0.05))
        self.deadline = sent + 0.8 * self.ttl  # counted from before the request was sent
        self.ended, self.renewing = threading.Event(), threading.Thread(target=self.renew, daemon=True)
        self.renewing.start()
        return self.token
    def renew(self):
        while not self.ended.wait(self.ttl / (3 if self.lane else 12)) and time.monotonic() < self.deadline:
            try:
                sent, self.lane = time.monotonic(), self.lane or self.open()
                held = self.run(self.lane, "renew", token=self.token) and time.monotonic() < self.deadline
                self.deadline = sent + 0.8 * self.ttl if held else 0.0  # a loss is final
            except Exception:  # unknown: the deadline stands; the next try may find the lease alive
                self.lane = None
    def write(self, sql):
        data, self.data = self.data or self.open(), None  # after an exception it is not used again:
        data.execute("BEGIN")  # whether its COMMIT was done is unknown
        if held := bool(self.run(data, "fence", token=self.token)) and time.monotonic() < self.deadline:
            data.execute(sql)
        data.execute("COMMIT" if held else "ROLLBACK")
        self.data = data
        return held
    def unlock(self):
        self.ended.set(), self.renewing.join()
        self.lane, self.deadline = self.lane or self.open(), 0.0
        return bool(self.run(self.lane, "release", token=self.token))

if __name__ == "__main__":
    lock = Lock(sys.argv[1], sys.argv[2], float((sys.argv[3:] or [30])[0]), "".join(sys.argv[4:]))
    for command, _, sql in (line.strip().partition(" ") for line in sys.stdin):
        try:
            print({"lock": lambda: f"token {lock.lock()}", "unlock": lambda: "free" if lock.unlock() else "lost",
                   "write": lambda: "written" if lock.write(sql) else "refused",
                   "state": lambda: "held" if time.monotonic() < lock.deadline else "lost"}[command](), flush=True)
        except Exception as failure:
            print("failed:", repr(failure), flush=True)
