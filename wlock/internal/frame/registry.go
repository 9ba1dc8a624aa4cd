package frame

// What a registry is asked, and what it answers.
const (
	Config  byte = 0
	Push    byte = 1
	Beat    byte = 2
	Version byte = 3

	// Of Config: the answers to All are Whole and Refused, and those to Validate Same, Changed and
	// Unknown.
	All      byte = 6
	Validate byte = 7
	Same     byte = 0
	Whole    byte = 1
	Changed  byte = 2
	Unknown  byte = 3
	Refused  byte = 4

	// Of Beat and Version: Sent is answered with Ack.
	Sent byte = 1
	Ack  byte = 5
)

// Control is a message from or to the registry.
type Control struct {
	Op, Kind byte
	Session  int64
	Payload  []byte
}

func (m *Control) layout(c *coder) {
	c.only(1)
	c.number(&m.Op)
	c.number(&m.Kind)
	c.number(&m.Session)
	c.rest(&m.Payload)
}
