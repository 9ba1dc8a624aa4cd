package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// Order is what a customer bought.
type Order struct {
	ID       string `json:"id" db:"id"`
	Account  string `json:"-" db:"account"` // that ordered, and alone may read it
	Customer string `json:"customer" db:"customer"`
	Total    int64  `json:"total" db:"total"` // in cents
	Lines    []Line `json:"lines" db:"-"`
}

// Line is so many of one product.
type Line struct {
	SKU      string `json:"sku" db:"sku"`
	Quantity int64  `json:"quantity" db:"quantity"`
	Price    int64  `json:"price" db:"price"` // of one, in cents
}

// errBadOrder is the customer's mistake.
var errBadOrder = errors.New("bad order")

func (o *Order) check() error {
	if o.Customer == "" || len(o.Customer) > 100 || len(o.Lines) == 0 {
		return fmt.Errorf("%w: name a customer, in 100 bytes, and at least one line", errBadOrder)
	}
	seen := make(map[string]bool)
	for _, l := range o.Lines {
		if l.Quantity < 1 || l.Quantity > 1000 || seen[l.SKU] {
			return fmt.Errorf("%w: product %q: from 1 to 1000 of it, on one line", errBadOrder, l.SKU)
		}
		seen[l.SKU] = true
	}
	return nil
}

// place writes the order in the caller's transaction. Nothing in it knows that it may be asked for
// twice. Its id is random, so that two orders can never pass for one.
func (o *Order) place(ctx context.Context, db *sqlx.DB, tx *sql.Tx) error {
	o.ID, o.Total = rand.Text(), 0
	for i := range o.Lines {
		l := &o.Lines[i]
		err := tx.QueryRowContext(ctx, db.Rebind(`SELECT price FROM products WHERE sku = ?`), l.SKU).Scan(&l.Price)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: there is no product %q", errBadOrder, l.SKU)
		}
		if err != nil {
			return err
		}
		o.Total += l.Price * l.Quantity
	}
	if _, err := tx.ExecContext(ctx, db.Rebind(`INSERT INTO orders (id, account, customer, total) VALUES (?, ?, ?, ?)`), o.ID, o.Account, o.Customer, o.Total); err != nil {
		return err
	}
	for _, l := range o.Lines {
		_, err := tx.ExecContext(ctx, db.Rebind(`INSERT INTO order_lines (order_id, sku, quantity, price) VALUES (?, ?, ?, ?)`), o.ID, l.SKU, l.Quantity, l.Price)
		if err != nil {
			return err
		}
	}
	return nil
}

// find reads an order of the account back. That of another account is sql.ErrNoRows.
func find(ctx context.Context, db *sqlx.DB, account, id string) (o Order, err error) {
	if err = db.GetContext(ctx, &o, db.Rebind(`SELECT id, account, customer, total FROM orders WHERE account = ? AND id = ?`), account, id); err != nil {
		return o, err
	}
	err = db.SelectContext(ctx, &o.Lines, db.Rebind(`SELECT sku, quantity, price FROM order_lines WHERE order_id = ? ORDER BY sku`), id)
	return o, err
}
