package groupreplication_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	_ "github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/groupreplication"
	"github.com/rowlockdb/rowlock/schema"
)

// A cluster is also a store of its own; a bridge moves keys to it and back.
func Example() {
	ctx := context.Background()
	var members []*sql.DB
	for _, host := range []string{"db1", "db2", "db3"} {
		db, err := sql.Open("mysql", "locks@tcp("+host+":3306)/locks")
		if err != nil {
			log.Fatal(err)
		}
		defer db.Close()
		members = append(members, db)
	}
	primary, err := groupreplication.Primary(ctx, members)
	if err != nil {
		log.Fatal(err)
	}
	if err := schema.Migrate(ctx, primary, mysql.New()); err != nil {
		log.Fatal(err)
	}
	cluster, err := groupreplication.New(ctx, members)
	if err != nil {
		log.Fatal(err) // for example an unsafe group: the error names the setting and the cure
	}
	defer cluster.Close()

	if err := cluster.Open(ctx, "invoice/42", 1); err != nil {
		log.Fatal(err)
	}
	got, err := cluster.Acquire(
		ctx,
		[]lease.AcquireRequest{{Key: "invoice/42", Owner: lease.NewOwner(), TTL: 30e9, Epoch: 1}},
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("granted:", got[0].Granted)
}
