package doctor

import (
	"context"
	"fmt"
	"strconv"
)

// connections compares the pool and its pinned connections with what the server has.
func connections(ctx context.Context, x *examiner) (f Finding, err error) {
	pool := x.pool.Stats()
	f.saw("MaxOpenConns of the pool", pool.MaxOpenConnections, "db.Stats")
	f.saw("connections", x.o.Connections, "the options of the examination")
	needs := x.o.Connections + 1
	if n := pool.MaxOpenConnections; n > 0 && n < needs {
		f.raise(either(n < min(needs, 3), Critical, Warning), fmt.Sprintf("the pool allows %d connections, of "+
			"which a client keeps up to %d: transactions of the application wait for the rest", n, x.o.Connections),
			fmt.Sprintf("db.SetMaxOpenConns(%d), or more", needs))
	}
	if pool.WaitCount > 0 && pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections {
		f.raise(Warning, fmt.Sprintf("all %d connections of the pool are in use, and callers have waited "+
			"%d times, for %s", pool.InUse, pool.WaitCount, pool.WaitDuration), "raise db.SetMaxOpenConns")
	}
	if err = x.serverLimits(ctx, &f); err == nil {
		f.fine("the server has connections left")
	}
	return f, err
}

func (x *examiner) serverLimits(ctx context.Context, f *Finding) error {
	limits, used, err := x.limits(ctx, f)
	if err != nil || limits == 0 {
		return err
	}
	if most := int64(x.pool.Stats().MaxOpenConnections); most > limits {
		f.raise(Warning, fmt.Sprintf("the pool may open %d connections and the server gives this user %d",
			most, limits), fmt.Sprintf("db.SetMaxOpenConns(%d) or fewer, for all processes together", limits))
	}
	if used*10 >= limits*9 {
		f.raise(Warning, fmt.Sprintf("%d of %d connections are in use: a renewal that must connect anew may "+
			"be refused, and its lock be lost", used, limits),
			"raise max_connections, or make the pools of all processes smaller")
	}
	return nil
}

// limits returns how many connections this user can have in all, 0 for any number, and how many are
// in use.
func (x *examiner) limits(ctx context.Context, f *Finding) (most, used int64, err error) {
	values, err := x.connectionValues(ctx, f)
	if err != nil {
		return 0, 0, err
	}
	most = values["max_connections"] - values["superuser_reserved_connections"] -
		values["reserved_connections"]
	for _, name := range []string{
		"limit of this role", "limit of this database", "max_user_connections",
	} {
		if v := values[name]; v > 0 {
			most = min(most, v)
		}
	}
	return most, values["connections in use"], nil
}

func (x *examiner) connectionValues(ctx context.Context, f *Finding) (map[string]int64, error) {
	values := make(map[string]int64)
	note := func(name, text, from string) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil {
			values[name] = n
			f.saw(name, text, from)
		}
	}
	rows, err := x.rows(ctx, "connections")
	for _, r := range rows {
		note(r[0], r[1], "the server")
	}
	if x.d.Name() == "mysql" {
		for _, name := range []string{"max_connections", "max_user_connections"} {
			note(name, x.setting(name), "SHOW VARIABLES")
		}
		var status map[string]string
		if status, err = x.status(ctx); err == nil {
			note("connections in use", status["threads_connected"], "SHOW GLOBAL STATUS")
		}
	}
	return values, err
}
