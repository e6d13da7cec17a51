package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

// Pipe is a transport to a handler behind a call that streams its answer: of
// another process of this user, or of this one. A file is not sent: the other
// end opens it. [Answer] is the other end.
type Pipe struct {
	// Call makes one call, whose answer is written to out.
	Call func(ctx context.Context, args []byte, out io.Writer) error
}

// Local is the base of URLs that go through a Pipe.
const Local = "http://localhost"

// pipeCall is a request in a Pipe.
type pipeCall struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte `json:",omitempty"`
	File   string `json:",omitempty"` // to read as the body
}

// pipeHead is what precedes the body of an answer, on a line of its own.
type pipeHead struct {
	Status int
	Header http.Header
}

// maxPipeHead bounds that line, in bytes.
const maxPipeHead = 64 << 10

// maxPipeBody bounds a request's body that is no file, in bytes.
const maxPipeBody = 16 << 20

// RoundTrip implements [http.RoundTripper].
func (p Pipe) RoundTrip(r *http.Request) (*http.Response, error) {
	call := pipeCall{Method: r.Method, URL: r.URL.String(), Header: r.Header}
	if r.Body != nil {
		defer r.Body.Close()
		if file, ok := r.Body.(*upload); ok {
			call.File = file.path
		} else {
			var err error
			if call.Body, err = io.ReadAll(io.LimitReader(r.Body, maxPipeBody+1)); err != nil {
				return nil, err
			}
			if len(call.Body) > maxPipeBody {
				return nil, errors.New("the request is too large")
			}
		}
	}
	args, err := json.Marshal(call)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	out, in := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		in.CloseWithError(p.Call(ctx, args, in)) // without an error it is the end
	}()
	body := &pipeBody{Reader: bufio.NewReaderSize(out, maxPipeHead)}
	body.close = func() { cancel(); _ = out.Close(); <-ended }
	head, err := body.head()
	if err != nil {
		body.close()
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(head.Status), StatusCode: head.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: head.Header, Body: body, ContentLength: -1, Request: r,
	}, nil
}

// pipeBody is the body of an answer.
type pipeBody struct {
	*bufio.Reader
	once  sync.Once
	close func()
}

func (b *pipeBody) head() (head pipeHead, err error) {
	line, err := b.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF):
		return head, errors.New("there was no answer")
	case err != nil:
		return head, err
	}
	return head, json.Unmarshal(line, &head)
}

// Close ends the call, if it has not ended, and waits for it.
func (b *pipeBody) Close() error {
	b.once.Do(b.close)
	return nil
}

// errCut is an answer that its handler has cut short.
var errCut = errors.New("the answer was cut short")

// Answer serves one call of a [Pipe] by a handler. The caller is the holder of
// the token.
func Answer(ctx context.Context, h http.Handler, token string, args []byte, out io.Writer) (err error) {
	var call pipeCall
	if err := json.Unmarshal(args, &call); err != nil {
		return errors.New("the request can't be read")
	}
	r, err := http.NewRequestWithContext(ctx, call.Method, call.URL, http.NoBody)
	if err != nil {
		return errors.New("the request can't be read")
	}
	if call.Header != nil {
		r.Header = call.Header
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if len(call.Body) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(call.Body)), int64(len(call.Body))
	}
	if call.File != "" {
		f, err := os.Open(call.File)
		if err != nil {
			return fmt.Errorf("read the file to send: %w", err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() {
			return errors.New("the file to send is no regular file")
		}
		r.Body, r.ContentLength = f, info.Size()
	}
	w := &pipeWriter{header: http.Header{}, out: out}
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			err = errCut
		} else if p != nil {
			panic(p)
		}
	}()
	h.ServeHTTP(w, r)
	w.WriteHeader(http.StatusOK) // unless it was written
	return w.err
}

// pipeWriter writes an answer into a stream.
type pipeWriter struct {
	header http.Header
	out    io.Writer
	begun  bool
	err    error
}

// Header implements [http.ResponseWriter].
func (w *pipeWriter) Header() http.Header { return w.header }

// WriteHeader writes the head, once.
func (w *pipeWriter) WriteHeader(status int) {
	if w.begun || status < http.StatusOK {
		return
	}
	w.begun = true
	head, err := json.Marshal(pipeHead{status, w.header})
	if err == nil {
		_, err = w.out.Write(append(head, '\n'))
	}
	w.err = err
}

// Write implements [io.Writer].
func (w *pipeWriter) Write(p []byte) (int, error) {
	if w.WriteHeader(http.StatusOK); w.err != nil {
		return 0, w.err
	}
	n, err := w.out.Write(p)
	w.err = err
	return n, err
}

// Flush does nothing: what is written is on its way.
func (w *pipeWriter) Flush() {}
