package main

import (
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/bench/internal/far"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// scene is a database as it is seen from so far away.
type scene struct {
	kind  rig.Kind
	delay time.Duration
	redis string // a Redis as far away; empty if there is none
}

// scenes are in the order of their measurement.
type scenes []scene

// of is the scene of a data source.
func (all scenes) of(source string) (found scene) {
	for _, one := range all {
		if one.kind.Source == source {
			found = one
		}
	}
	return found
}

// places are where to go from each distance, and what makes scenes of the addresses that they have
// got.
func (s settings) places() (all []far.Place, seen func(at []string) scenes, err error) {
	var makers []func(at []string) scene
	redis := os.Getenv("ROWLOCK_TEST_REDIS")
	add := func(driver, source string, delay time.Duration) (through func([]string) string, err error) {
		address, with, err := split(driver, source)
		i := len(all)
		all = append(all, far.Place{Address: address, Delay: delay})
		return func(at []string) string { return with(at[i]) }, err
	}
	for _, delay := range s.delays {
		cache := func([]string) string { return "" }
		if redis != "" {
			if cache, err = add("redis", redis, delay); err != nil {
				return nil, nil, err
			}
		}
		for _, k := range s.kinds {
			source, err := add(k.Driver, k.Source, delay)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", k.Name, err)
			}
			makers = append(makers, func(at []string) scene {
				k.Source = source(at)
				return scene{k, delay, cache(at)}
			})
		}
	}
	return all, func(at []string) (out scenes) {
		for _, one := range makers {
			out = append(out, one(at))
		}
		return out
	}, nil
}

// split finds the server's address in a data source name, and returns what makes the same name
// with another.
func split(driver, source string) (address string, with func(string) string, err error) {
	if driver == "mysql" {
		cfg, err := mysql.ParseDSN(source)
		if err != nil || cfg.Net != "tcp" {
			return "", nil, fmt.Errorf("its data source name has no address of TCP: %w", err)
		}
		return cfg.Addr, func(at string) string {
			cfg := cfg.Clone()
			cfg.Addr = at
			return cfg.FormatDSN()
		}, nil
	}
	u, err := url.Parse(source)
	if err != nil || u.Port() == "" {
		return "", nil, fmt.Errorf("its data source name is no URL with a port: %w", err)
	}
	return u.Host, func(at string) string {
		moved := *u
		moved.Host = at
		return moved.String()
	}, nil
}
