package faultdb

import "sync"

// Switch is an injector that can be exchanged while it is in use. The zero value does nothing.
type Switch struct {
	mu  sync.Mutex
	inj Injector
}

// Inject does what the present injector does.
func (s *Switch) Inject(op Op) Fault {
	s.mu.Lock()
	inj := s.inj
	s.mu.Unlock()
	if inj == nil {
		return None
	}
	return inj.Inject(op)
}

// Set puts inj in the place of the one there was; nil is none.
func (s *Switch) Set(inj Injector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inj = inj
}
