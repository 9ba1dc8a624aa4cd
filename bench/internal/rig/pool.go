package rig

import (
	"database/sql"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	rowmysql "github.com/rowlockdb/rowlock/dialect/mysql"
)

// connect opens the pool, whose connections the wire counts where there are any.
func (d *Database) connect() (err error) {
	d.Wire = new(Wire)
	switch d.Driver {
	case "pgx":
		d.Pool, err = d.postgres()
	case "mysql":
		d.Pool, err = d.mysql()
	default:
		d.Wire = nil
		d.Pool, err = sql.Open(d.Driver, d.Source)
	}
	return err
}

func (d *Database) postgres() (*sql.DB, error) {
	cfg, err := pgx.ParseConfig(d.Source)
	if err != nil {
		return nil, err
	}
	cfg.DialFunc = d.Wire.Dial
	return stdlib.OpenDB(*cfg), nil
}

func (d *Database) mysql() (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(d.Source)
	if err != nil {
		return nil, err
	}
	cfg.DialFunc = d.Wire.Dial
	connector, err := rowmysql.Connector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
