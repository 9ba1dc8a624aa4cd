package token

import (
	"context"
	"fmt"
	"log"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/tokenfence"
)

func right(ctx context.Context, locks *rowlock.Client, l, other *rowlock.Lock, fence *tokenfence.Fence, tx rowlock.Tx) error {
	if l.Token() == 0 || l.Token() > other.Token() {
		log.Print(l.Token())
	}
	last := other.Token()
	if l.Token() <= last {
		fmt.Println(l.Token(), last)
	}
	records, err := locks.Inspect(ctx)
	for _, r := range records {
		if r.Token == l.Token() {
			fmt.Println(r.Key)
		}
	}
	if err != nil {
		return err
	}
	return fence.Pass(ctx, tx, 7, l.Token())
}
