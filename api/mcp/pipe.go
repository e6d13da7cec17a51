package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"
)

// maxLine bounds a message on a pipe, in bytes.
const maxLine = 4 * maxBody

// pipe is the connection of a server over a reader and a writer. The end of its
// input is seen once every call before it is answered: a program may write its
// calls and close.
type pipe struct {
	ctx context.Context
	in  *bufio.Scanner
	out io.Writer

	mu       sync.Mutex
	rest     []byte // of the line that is being read
	waiting  int    // calls that are not answered yet
	answered chan struct{}
}

func newPipe(ctx context.Context, in io.Reader, out io.Writer) *pipe {
	p := &pipe{ctx: ctx, in: bufio.NewScanner(in), out: out, answered: make(chan struct{}, 1)}
	p.in.Buffer(nil, maxLine)
	return p
}

// Read reads a part of one line.
func (p *pipe) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if !p.in.Scan() {
			if err := p.in.Err(); err != nil {
				return 0, err
			}
			p.await()
			return 0, io.EOF
		}
		if line := bytes.TrimSpace(p.in.Bytes()); len(line) > 0 {
			p.rest = append(bytes.Clone(line), '\n')
			p.count(line, 1)
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Write writes one message.
func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.out.Write(b)
	p.count(b, -1)
	return n, err
}

// Close leaves both ends to their opener.
func (p *pipe) Close() error { return nil }

// count counts the calls in what is read, or the answers in what is written.
func (p *pipe) count(line []byte, by int) {
	type message struct {
		ID     json.RawMessage
		Method *string
	}
	var all []message
	if len(line) == 0 {
		return
	}
	if line[0] == '[' {
		_ = json.Unmarshal(line, &all) // what is no message is refused by those who read it
	} else {
		all = make([]message, 1)
		_ = json.Unmarshal(line, &all[0])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range all {
		if len(all[i].ID) > 0 && (all[i].Method != nil) == (by > 0) {
			p.waiting += by
		}
	}
	select {
	case p.answered <- struct{}{}:
	default:
	}
}

// await waits until all calls are answered.
func (p *pipe) await() {
	timer := time.NewTimer(callTimeout)
	defer timer.Stop()
	for {
		p.mu.Lock()
		waiting := p.waiting
		p.mu.Unlock()
		if waiting <= 0 {
			return
		}
		select {
		case <-p.answered:
		case <-timer.C:
			return
		case <-p.ctx.Done():
			return
		}
	}
}
