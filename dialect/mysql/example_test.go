package mysql_test

import (
	"database/sql"
	"fmt"
	"log"
	"os"
	"strings"

	driver "github.com/go-sql-driver/mysql"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/schema"
)

// The same dialect is for MySQL and for MariaDB. The tables can be in another database than the
// application's, and have a prefix. The SQL is for a migration tool of yours.
func ExampleNew() {
	up, _, err := schema.SQL(mysql.New(dialect.Schema("shared"), dialect.Prefix("billing_")))
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(up) {
		if strings.HasPrefix(line, "CREATE TABLE") {
			fmt.Print(line)
		}
	}
	// Output:
	// CREATE TABLE IF NOT EXISTS `shared`.`billing_rowlock` (
	// CREATE TABLE IF NOT EXISTS `shared`.`billing_rowlock_floor` (
	// CREATE TABLE IF NOT EXISTS `shared`.`billing_rowlock_queue` (
	// CREATE TABLE IF NOT EXISTS `shared`.`billing_rowlock_wait` (
	// CREATE TABLE IF NOT EXISTS `shared`.`billing_rowlock_forced` (
	// CREATE TABLE IF NOT EXISTS `shared`.`billing_rowlock_meta` (
	// CREATE TABLE IF NOT EXISTS `shared`.`billing_rowlock_member` (
	// CREATE TABLE IF NOT EXISTS `shared`.`billing_rowlock_limit` (
	// CREATE TABLE IF NOT EXISTS `shared`.`billing_rowlock_once` (
	// CREATE TABLE IF NOT EXISTS `shared`.`billing_rowlock_latch` (
	// CREATE TABLE IF NOT EXISTS `shared`.`billing_rowlock_party` (
	// CREATE TABLE IF NOT EXISTS `shared`.`billing_rowlock_hold` (
	// CREATE TABLE IF NOT EXISTS `shared`.`billing_rowlock_trace` (
}

// The driver need not watch a context for each statement of a lock. rowlock keeps up to
// Config.Connections connections of the pool to itself: a limit has room for them and for the
// application.
func ExampleConnector() {
	cfg, err := driver.ParseDSN(os.Getenv("MYSQL_DSN"))
	if err != nil {
		log.Fatal(err)
	}
	connector, err := mysql.Connector(cfg) // in the place of driver.NewConnector
	if err != nil {
		log.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(20)
	locks, err := rowlock.Open(db, mysql.New(), &rowlock.Config{Connections: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// Every session of the pool shows which program it belongs to, and rowlock's rows show the same.
func ExampleIdentify() {
	dsn, err := mysql.Identify("app:secret@tcp(db:3306)/shop", "web-1/orders")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(dsn)
	// Output:
	// app:secret@tcp(db:3306)/shop?connectionAttributes=program_name%3Aweb-1%2Forders
}

// A name leads to the primary, by a proxy or by DNS. RequireSync refuses a primary whose commits
// wait for no replica, now and after each failover.
func ExampleNew_failover() {
	db, err := sql.Open("mysql", "app@tcp(primary.internal:3306)/app?timeout=3s")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	locks, err := rowlock.Open(db, mysql.New(), &rowlock.Config{RequireSync: true})
	if err != nil {
		log.Fatal(err) // rowlock: no synchronous replica: …, with the cure
	}
	defer locks.Close()
}
