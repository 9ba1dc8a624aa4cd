package main

import (
	"context"
	"database/sql"
	"errors"

	"golang.org/x/sync/errgroup"
)

// serveAll lets the buyers in. The first who cannot be served ends the sale.
func (s *shop) serveAll(ctx context.Context) error {
	all, inside := errgroup.WithContext(ctx)
	all.SetLimit(crowd)
	for number := range int64(s.buyers) {
		all.Go(func() error { return s.serve(inside, buyer{number, 1 + number%3}) })
	}
	return all.Wait()
}

type buyer struct{ number, wants int64 }

// errTooFew says that the segment has fewer items than the buyer wants.
var errTooFew = errors.New("too few items in the segment")

// serve sells to a buyer from any segment that is free. One who cannot have all gets nothing.
func (s *shop) serve(ctx context.Context, b buyer) error {
	l, err := s.stock.Any(ctx)
	if err != nil {
		return err
	}
	segment, _ := s.stock.Index(l.Key())
	err = l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error { return s.sell(ctx, tx, segment, b) })
	// Unlocked before the loan, which locks two segments together: no buyer holds one and waits.
	if err := l.Unlock(ctx); err != nil {
		return err
	}
	for errors.Is(err, errTooFew) {
		var from int
		if from, err = s.fullest(ctx, segment, b.wants); err != nil || from < 0 {
			return err // or all that is left is too little
		}
		err = s.borrow(ctx, segment, from, b)
	}
	return err
}

// fullest returns the segment from which it is best to borrow, -1 if all together have too few. One
// statement sees a loan between two segments as a whole or not at all, and nothing is put back into
// the stock: too few stay too few.
func (s *shop) fullest(ctx context.Context, but int, wants int64) (from int, err error) {
	var rows []struct{ Segment, Items int64 }
	err = s.db.SelectContext(ctx, &rows, s.sql(`SELECT segment, items FROM {stock}`))
	from = -1
	var total, most int64
	for _, r := range rows {
		total += r.Items
		if int(r.Segment) != but && r.Items > most {
			from, most = int(r.Segment), r.Items
		}
	}
	if total < wants {
		return -1, err
	}
	if from < 0 {
		return but, err // the segment itself has been given what there is
	}
	return from, err
}

// borrow moves half of one segment's items to another and sells from there, in one transaction
// under the locks of both. It is errTooFew if other buyers were faster.
func (s *shop) borrow(ctx context.Context, to, from int, b buyer) error {
	var lent, sold bool
	both := []string{s.stock.Key(to), s.stock.Key(from)}
	err := s.locks.DoAllTx(ctx, both, func(ctx context.Context, tx *sql.Tx) (err error) {
		if lent, err = s.lend(ctx, tx, from, to); err != nil {
			return err
		}
		err = s.sell(ctx, tx, to, b)
		if sold = err == nil; !sold && lent && errors.Is(err, errTooFew) {
			return nil // the loan stays, and the next one makes it enough
		}
		return err
	})
	if err != nil {
		return err
	}
	if lent {
		s.loans.Add(1)
	}
	if !sold {
		return errTooFew
	}
	return nil
}

// lend moves half of a segment's items, and reports whether there were any.
func (s *shop) lend(ctx context.Context, tx *sql.Tx, from, to int) (bool, error) {
	has, err := s.holds(ctx, tx, from)
	if err != nil || from == to || has == 0 {
		return false, err
	}
	const change = `UPDATE {stock} SET items = items + ? WHERE segment = ?`
	loan := (has + 1) / 2
	_, err = tx.ExecContext(ctx, s.sql(change), -loan, from)
	if err == nil {
		_, err = tx.ExecContext(ctx, s.sql(change), loan, to)
	}
	return err == nil, err
}

func (s *shop) holds(ctx context.Context, tx *sql.Tx, segment int) (items int64, err error) {
	err = tx.QueryRowContext(ctx, s.sql(`SELECT items FROM {stock} WHERE segment = ?`), segment).Scan(&items)
	return items, err
}

// sell reads and then writes, which only the lock makes right.
func (s *shop) sell(ctx context.Context, tx *sql.Tx, segment int, b buyer) error {
	items, err := s.holds(ctx, tx, segment)
	if err != nil {
		return err
	}
	if items < b.wants {
		return errTooFew
	}
	_, err = tx.ExecContext(ctx, s.sql(`UPDATE {stock} SET items = ? WHERE segment = ?`),
		items-b.wants, segment)
	if err == nil {
		_, err = tx.ExecContext(ctx, s.sql(`INSERT INTO {sold} (buyer, segment, items) VALUES (?, ?, ?)`),
			b.number, segment, b.wants)
	}
	return err
}
