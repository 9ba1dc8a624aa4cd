package rowlock

import "time"

// Times returns what one call with opts asks for, of a client made with cfg.
func Times(cfg Config, opts ...Option) (ttl, margin, every time.Duration, err error) {
	full, err := cfg.withDefaults()
	if err != nil {
		return 0, 0, 0, err
	}
	r := (&Client{keeper: keeper{cfg: full}}).newCall(nil, false)
	err = r.apply(opts)
	return r.Want.TTL, r.margin, r.every, err
}
