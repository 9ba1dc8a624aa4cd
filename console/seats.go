package console

import (
	"fmt"
	"sync"
)

// seats count the pages that refresh themselves.
type seats struct {
	all, each int // how many there are, and how many of them one viewer may have

	mu    sync.Mutex
	taken int
	of    map[string]int // by the viewer's name
}

// take counts a page. Its error is for the viewer.
func (s *seats) take(who string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.of[who] >= s.each:
		return nil, fmt.Errorf("%d pages of %s refresh themselves already; close one of them, or reload "+
			"this one to see changes", s.of[who], plain(who))
	case s.taken >= s.all:
		return nil, fmt.Errorf("%d pages refresh themselves already; reload this one to see changes",
			s.taken)
	}
	s.taken++
	s.of[who]++
	return func() { s.leave(who) }, nil
}

func (s *seats) leave(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.of[who]--; s.of[who] == 0 {
		delete(s.of, who)
	}
}
