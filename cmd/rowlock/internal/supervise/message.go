package supervise

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// order is what the keeper tells the warden, one JSON value a line.
type order struct {
	// Until is the deadline on the machine's clock; see now.
	Until time.Duration `json:"until,omitempty"`
	// End has the warden end the group now.
	End bool `json:"end,omitempty"`
	// Signal is passed on to the group.
	Signal int `json:"signal,omitempty"`
}

// word is what the warden tells the keeper.
type word struct {
	// Group is the process group of the command, when it has started.
	Group int `json:"group,omitempty"`
	// Asks says that the command was stopped because it uses the terminal from the background.
	Asks bool `json:"asks,omitempty"`
	// End is how it ended; nothing comes after it.
	End *End `json:"end,omitempty"`
}

// End is how a command ended.
type End struct {
	// Code is its exit code, or 128 and the signal that has ended it.
	Code int `json:"code"`
	// Failed says why it could not be started: Code is 126, or 127 if there is no such program.
	Failed string `json:"failed,omitempty"`
	// Ended says that the group was sent SIGTERM because of a deadline, or because the keeper said
	// so, before the command had ended by itself.
	Ended bool `json:"ended,omitempty"`
	// Left says that processes of the group were still there after the command, and were ended.
	Left bool `json:"left,omitempty"`
}

func send(to io.Writer, what any) error {
	line, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("supervise: %w", err)
	}
	_, err = to.Write(append(line, '\n'))
	return err
}
