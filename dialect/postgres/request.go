package postgres

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/rowlockdb/rowlock/internal/conn"
)

// request is what a wire is to send. It keeps its memory from one request to the next.
type request struct {
	all   []execution
	bytes []byte // of the parameters
	sent  bool   // the next Put begins a new one
}

// execution is one statement with its parameters.
type execution struct {
	plan    *plan
	params  [][]byte
	formats []int16
}

// mostKept is how much memory a connection keeps for requests and for replies.
const mostKept = 1 << 18

// Put encodes an execution.
func (w *wire) Put(p conn.Plan, args []conn.Arg) error {
	if w.broken.Load() {
		return errBroken // what is sent late may still read the last request
	}
	r := &w.request
	if r.sent {
		r.all, r.bytes, r.sent = r.all[:0], r.bytes[:0], false
	}
	if r.bytes == nil || len(r.all) == 0 && cap(r.bytes) > mostKept {
		r.bytes = make([]byte, 0, 256)
	}
	r.all = slices.Grow(r.all, 1)[:len(r.all)+1] // with the memory of an earlier one
	x := &r.all[len(r.all)-1]
	x.plan, x.params, x.formats = p.(*plan), x.params[:0], x.formats[:0]
	types := x.plan.description.ParamOIDs
	if len(args) != len(types) {
		return fmt.Errorf("%d arguments for %d parameters", len(args), len(types))
	}
	for i := range args {
		if err := r.param(x, types[i], &args[i]); err != nil {
			return fmt.Errorf("parameter %d: %w", i+1, err)
		}
	}
	return nil
}

// Forget drops what was put.
func (w *wire) Forget() { w.request.sent = true }

func (r *request) returns() bool {
	for i := range r.all {
		if len(r.all[i].plan.results) > 0 {
			return true
		}
	}
	return false
}

func (r *request) text() string {
	if len(r.all) == 1 {
		return r.all[0].plan.description.SQL
	}
	var all []string
	for i := range r.all {
		all = append(all, r.all[i].plan.description.SQL)
	}
	return strings.Join(all, ";\n")
}

// param encodes a parameter, in the binary format where that is shorter. What was encoded before
// stays where it was, also when the memory grows.
func (r *request) param(x *execution, oid uint32, a *conn.Arg) error {
	from, format, null := len(r.bytes), int16(pgx.TextFormatCode), false
	switch a.Kind {
	case conn.ArgInt:
		format = r.int(oid, a.Int)
	case conn.ArgOwner:
		r.bytes = append(r.bytes, a.Owner[:]...)
		format = raw(oid)
	case conn.ArgKey:
		r.bytes = append(r.bytes, a.Text...)
		format = raw(oid)
	case conn.ArgText:
		r.bytes = append(r.bytes, a.Text...)
	default:
		var err error
		if format, null, err = r.value(oid, a.Value); err != nil {
			return err
		}
	}
	var p []byte
	if !null {
		p = r.bytes[from:len(r.bytes):len(r.bytes)]
	}
	x.params, x.formats = append(x.params, p), append(x.formats, format)
	return nil
}

// raw is the format in which bytes are sent as they are.
func raw(oid uint32) int16 {
	if oid == pgtype.ByteaOID {
		return pgx.BinaryFormatCode
	}
	return pgx.TextFormatCode
}

func (r *request) int(oid uint32, n int64) int16 {
	switch {
	case oid == pgtype.Int8OID:
		r.bytes = binary.BigEndian.AppendUint64(r.bytes, uint64(n))
	case oid == pgtype.Int4OID && n >= math.MinInt32 && n <= math.MaxInt32:
		r.bytes = binary.BigEndian.AppendUint32(r.bytes, uint32(int32(n)))
	default:
		r.bytes = strconv.AppendInt(r.bytes, n, 10) // the server says what is too large
		return pgx.TextFormatCode
	}
	return pgx.BinaryFormatCode
}

func (r *request) value(oid uint32, v any) (format int16, null bool, err error) {
	switch v := v.(type) {
	case nil:
		return 0, true, nil
	case []byte:
		r.bytes = append(r.bytes, v...)
		return raw(oid), v == nil, nil
	case string:
		r.bytes = append(r.bytes, v...)
	case int64:
		return r.int(oid, v), false, nil
	case int:
		return r.int(oid, int64(v)), false, nil
	case bool:
		r.bytes = strconv.AppendBool(r.bytes, v)
	case *array:
		if v.n > 0 {
			r.bytes = v.binary(r.bytes)
			return pgx.BinaryFormatCode, false, nil
		}
		r.bytes = append(r.bytes, "{}"...) // of whatever type
	default:
		err = fmt.Errorf("no way to send a %T", v)
	}
	return pgx.TextFormatCode, false, err
}
