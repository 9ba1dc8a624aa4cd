package frame

import (
	"fmt"
	"strings"
)

// Type is what a message of a lock server is about.
type Type byte

// The types. Event and Reboot are sent by servers, in the layout of a Request.
const (
	Acquire Type = iota
	Watch
	Release
	Get
	Renew
	Event
	Heartbeat
	_
	Reboot
)

// Status is a server's answer.
type Status int16

// The statuses. Error means that the change may still be carried out.
const (
	Success      Status = 0
	Error        Status = 2
	Occupied     Status = 3
	Deleted      Status = 4
	ChangedOwner Status = 5
	Redirect     Status = 6
	TokenError   Status = 8
	Wait         Status = 9
)

// String is the protocol's name.
func (s Status) String() string {
	names := [...]string{
		"SUCCESS", "TIMEOUT", "ERROR", "LOCK_OCCUPIED", "LOCK_DELETED", "LOCK_CHANGED_OWNER",
		"MASTER_REDIRECT", "PROPOSE_FAIL", "TOKEN_ERROR", "LOCK_WAIT",
	}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("status %d", int16(s))
	}
	return names[s]
}

// Acquired is an Event by which a waiter has the lock. The others only say that it may be free.
const Acquired int32 = 0

// Owner is who asks: host, thread and process of Java clients, which are 128 free bits.
type Owner [16]byte

// Kind is the lock type and, of read-write locks, the opcode.
type Kind struct{ Type, Op byte }

// The kinds of lock. A key must not be used with two types.
var (
	Mutex  = Kind{}
	Writer = Kind{1, 1}
	Reader = Kind{1, 2}
)

// Request is what a client sends, and what a server sends by itself. Which of the fields after
// Properties are sent depends on Type.
type Request struct {
	Type       Type
	Session    int64
	Hops       int16
	Group      int32
	Kind       Kind
	Tenant     string
	Key        string
	Owner      Owner
	Stamp      int64
	Properties string

	Lock
}

// Lock is what a request asks for.
type Lock struct {
	Token   int64
	Expire  int32 // milliseconds
	Blocked byte
	Timeout int64 // milliseconds
	Weight  int32
	WatchID int64
	// Watch is 0 to wait in the queue for the lock, 1 to be told of it, 2 for both.
	Watch int32
	// WaitAcquire is ignored by servers.
	WaitAcquire byte
	Event       int32
}

// layout needs version 2: the server answers nothing to version 1.
func (m *Request) layout(c *coder) {
	c.only(2)
	c.only(0)
	c.number((*byte)(&m.Type))
	c.number(&m.Session)
	c.number(&m.Hops)
	c.number(&m.Group)
	c.number(&m.Kind.Type)
	c.number(&m.Kind.Op)
	text[int16](c, &m.Tenant)
	text[int16](c, &m.Key)
	c.raw(m.Owner[:])
	c.number(&m.Stamp)
	text[int32](c, &m.Properties)
	m.extra(c)
}

func (m *Request) extra(c *coder) {
	switch m.Type {
	case Acquire:
		c.number(&m.Token)
		c.number(&m.Expire)
		c.number(&m.Blocked)
		c.number(&m.Timeout)
		c.number(&m.Weight)
		c.number(&m.WatchID)
	case Watch:
		c.number(&m.Token)
		c.number(&m.Watch)
		c.number(&m.WatchID)
		c.number(&m.Timeout)
		c.number(&m.WaitAcquire)
		c.number(&m.Expire)
		c.number(&m.Weight)
	case Release:
		c.number(&m.Token)
	case Renew:
		c.number(&m.Token)
		c.number(&m.Expire)
	case Event:
		c.number(&m.Token)
		c.number(&m.WatchID)
		c.number(&m.Event)
	case Get, Heartbeat, Reboot:
	default:
		c.failed = true // a server is silent then
	}
}

// Response is a server's answer.
type Response struct {
	Type       Type
	Session    int64
	Status     Status
	Hops       int16
	Key        string
	Properties string

	// Token and Owner are those of the lock, in answers to Acquire and Get.
	Token int64
	Owner Owner
}

func (m *Response) layout(c *coder) {
	c.only(2)
	c.only(0)
	c.number((*byte)(&m.Type))
	c.number(&m.Session)
	c.number((*int16)(&m.Status))
	c.number(&m.Hops)
	text[int16](c, &m.Key)
	text[int32](c, &m.Properties)
	if m.Status == Redirect { // has no more, whatever the type
		return
	}
	switch m.Type {
	case Acquire, Get:
		c.number(&m.Token)
		if c.raw(m.Owner[:]); m.Type == Get { // has the upper half of the process too
			sign := int32(int8(m.Owner[15]) >> 7)
			c.number(&sign)
		}
	}
}

// Master is the address in a redirect's properties, or "".
func Master(properties string) string {
	for one := range strings.SplitSeq(properties, "^") {
		if name, value, _ := strings.Cut(one, "!"); name == "PROPERTY_MASTER" {
			return value
		}
	}
	return ""
}
