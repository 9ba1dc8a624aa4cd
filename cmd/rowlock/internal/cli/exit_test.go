package cli

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
)

// An error number of the system is a net.Error, also one of a file.
func TestAFileIsNoDatabaseThatDoesNotAnswer(t *testing.T) {
	for err, want := range map[error]int{
		&fs.PathError{Op: "open", Path: "ca.pem", Err: syscall.EACCES}:                                    exitOther,
		&fs.PathError{Op: "write", Path: "demo", Err: syscall.ENOSPC}:                                     exitOther,
		&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}:    exitUnreachable,
		&net.DNSError{Err: "no such host", Name: "db"}:                                                    exitUnreachable,
		&fs.PathError{Op: "read", Path: "socket", Err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}: exitUnreachable,
	} {
		if code := exitCode(fmt.Errorf("rowlock: %w", err)); code != want {
			t.Errorf("%v: exits with %d, want %d", err, code, want)
		}
	}
}
