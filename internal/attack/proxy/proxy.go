package proxy

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Direction is that of a stream.
type Direction int

// Up is from client to server.
const (
	Up Direction = iota
	Down
)

// Proxy accepts connections and passes them on to one server.
type Proxy struct {
	listener net.Listener
	protocol Protocol
	decide   func(Statement) Fate

	mu      sync.Mutex
	target  string
	links   map[*link]bool
	refuse  bool
	closed  bool
	gates   [2]chan struct{} // closed while open
	delay   [2]func() time.Duration
	running sync.WaitGroup
}

// Listen starts a proxy on a free port. Decide is asked for the fate of each statement; nil passes
// all.
func Listen(target string, protocol Protocol, decide func(Statement) Fate) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, protocol: protocol, decide: decide, target: target, links: make(map[*link]bool)}
	for d := range p.gates {
		p.gates[d] = make(chan struct{})
		close(p.gates[d])
	}
	p.running.Go(p.accept)
	return p, nil
}

// Address is where clients connect.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close ends all connections, and returns when nothing of the proxy runs.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Heal()
	p.Cut()
	p.running.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.running.Go(func() { p.serve(c) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	refuse, target := p.refuse || p.closed, p.target
	p.mu.Unlock()
	if refuse {
		return
	}
	server, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		return
	}
	l := newLink(p, client, server)
	if !p.add(l) {
		l.close()
		return
	}
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse || p.closed {
		return false
	}
	p.links[l] = true
	return true
}

// Retarget has new connections go to another server.
func (p *Proxy) Retarget(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = address
}

// Cut ends all connections there are.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Refuse ends all connections and takes none until Heal.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	p.refuse = true
	p.mu.Unlock()
	p.Cut()
}

// Stall keeps all bytes of a direction until Heal, as a network does that loses packets: they are
// sent again and arrive late.
func (p *Proxy) Stall(d Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gates[d]:
		p.gates[d] = make(chan struct{})
	default:
	}
}

// Delay has each read of a direction wait, until Heal.
func (p *Proxy) Delay(d Direction, how func() time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay[d] = how
}

// Heal ends what Refuse, Stall and Delay began.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = false
	for d := range p.gates {
		p.delay[d] = nil
		select {
		case <-p.gates[d]:
		default:
			close(p.gates[d])
		}
	}
}

// pass returns when bytes of a direction may go on; it reports whether the link is still open.
func (p *Proxy) pass(d Direction, l *link) bool {
	p.mu.Lock()
	gate, how := p.gates[d], p.delay[d]
	p.mu.Unlock()
	if how != nil {
		select {
		case <-time.After(how()):
		case <-l.closed:
			return false
		}
	}
	select {
	case <-gate:
		return true
	case <-l.closed:
		return false
	}
}
