package proxy

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// status appends the status line.
func (w *doorWriter) status(code int) {
	w.makeRoom(0)
	if code == http.StatusOK {
		w.out = append(w.out, "HTTP/1.1 200 OK\r\n"...)
		return
	}
	w.out = strconv.AppendInt(append(w.out, "HTTP/1.1 "...), int64(code), 10)
	if text := http.StatusText(code); text != "" {
		w.out = append(append(w.out, ' '), text...)
	} else {
		w.out = strconv.AppendInt(append(w.out, " status code "...), int64(code), 10)
	}
	w.out = append(w.out, "\r\n"...)
}

// sendFields appends the header's fields but for those that skip names.
func (w *doorWriter) sendFields(skip func(name string) bool) {
	fields := w.fields[:0]
	for name, values := range w.header {
		if len(values) > 0 && !skip(name) {
			fields = append(fields, headField{name, values})
		}
	}
	sortFields(fields)
	w.out = appendSorted(w.out, fields)
	clear(w.fields[:])
}

// frame completes the head. first is what the body begins with. last says that the handler has returned: then that is all of it.
func (w *doorWriter) frame(last bool, first []byte) {
	w.framed = true
	announced := w.length >= 0
	if last && !announced && !w.bare && !w.late {
		w.length = int64(len(first))
	}
	// Clients that send all of a request before they read would wait forever.
	if !w.close && !w.duplex {
		w.drain()
	}
	w.close = w.close || w.c.door.closing.Load()
	w.chunked = w.length < 0 && !w.bare
	w.makeRoom(0)
	if !w.dated {
		w.out = append(time.Now().UTC().AppendFormat(append(w.out, "Date: "...), http.TimeFormat), "\r\n"...)
	}
	if w.length >= 0 && !announced {
		w.out = append(strconv.AppendInt(append(w.out, "Content-Length: "...), w.length, 10), "\r\n"...)
	}
	if !w.typed && !w.bare && len(first) > 0 {
		w.out = append(append(append(w.out, "Content-Type: "...), http.DetectContentType(first)...), "\r\n"...)
	}
	if w.close && !w.said {
		w.out = append(w.out, "Connection: close\r\n"...)
	}
	if w.chunked {
		w.out = append(w.out, "Transfer-Encoding: chunked\r\n"...)
	}
	w.out = append(w.out, "\r\n"...)
}

// chunkFrame is what a chunk has around it at most, in bytes.
const chunkFrame = 16 + 2*len("\r\n")

// piece appends p to what waits to be sent, or sends both where they are too much to be copied.
func (w *doorWriter) piece(p []byte) {
	w.makeRoom(chunkFrame)
	if w.chunked {
		w.out = append(strconv.AppendInt(w.out, int64(len(p)), 16), "\r\n"...)
	}
	if len(w.out)+len(p)+len("\r\n") <= cap(w.out) {
		if w.out = append(w.out, p...); w.chunked {
			w.out = append(w.out, "\r\n"...)
		}
		return
	}
	if w.c.tls != nil {
		if w.records(p); w.chunked {
			w.records(crlf)
		}
		return
	}
	w.pieces = append(w.room[:0], w.out, p)
	if w.chunked {
		w.pieces = append(w.pieces, crlf)
	}
	if w.failed == nil {
		_, err := w.pieces.WriteTo(w.c.tcp)
		w.fail(err)
	}
	clear(w.room[:])
	w.pieces = nil
	w.out = w.out[:0]
}

// records is piece of what is too much to be copied whole: of p, only what fills w.out, and what is left for the next record.
func (w *doorWriter) records(p []byte) {
	for len(p) > 0 {
		if n := len(p) - len(p)%cap(w.out); len(w.out) == 0 && n > 0 {
			w.put(p[:n])
			p = p[n:]
			continue
		}
		n := copy(w.out[len(w.out):cap(w.out)], p)
		w.out, p = w.out[:len(w.out)+n], p[n:]
		if len(w.out) == cap(w.out) {
			w.put(w.out)
			w.out = w.out[:0]
		}
	}
}

// put sends p.
func (w *doorWriter) put(p []byte) {
	if len(p) > 0 && w.failed == nil {
		_, err := w.c.out.Write(p)
		w.fail(err)
	}
}

// makeRoom sees to it that n bytes can be appended without being moved.
func (w *doorWriter) makeRoom(n int) {
	if w.out != nil && len(w.out)+n > cap(w.out) {
		w.send()
	}
	if w.out == nil {
		w.out = takeBuffer(h1ReadBuffer)
	}
}

// send sends what waits. No buffer is held for what comes later.
func (w *doorWriter) send() {
	w.put(w.out)
	giveBuffer(w.out)
	w.out = nil
}

// fail notes why nothing more can be sent.
func (w *doorWriter) fail(err error) {
	if err != nil {
		w.failed = err
		w.c.cancel()
	}
}

// appendTrailers appends what follows the last chunk: the trailers that the handler has left in its header, and the body's end.
func (w *doorWriter) appendTrailers(b []byte) []byte {
	trailers := http.Header{}
	for name, values := range w.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			trailers[name] = values
		}
	}
	for _, name := range w.trailers {
		trailers[name] = append(trailers[name], w.header[name]...)
	}
	if len(trailers) > 0 {
		var lines bytes.Buffer
		_ = trailers.Write(&lines) // to memory
		b = append(b, lines.Bytes()...)
	}
	return append(b, "\r\n"...)
}
