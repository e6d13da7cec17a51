// Package request is what the HTTP faces of the control plane have in common:
// who calls, bodies with limits, answers and problems.
//
// Errors become problems (RFC 9457) that name a field and never quote a value.
// What goes wrong inside Remora is logged with the id of the request, not told.
package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/proxy/problem"
)

// MaxBody bounds a JSON body, in bytes, unless a route has a limit of its own.
const MaxBody = 1 << 20

// HeaderID is the header with the request's id.
const HeaderID = "X-Request-Id"

// Credential returns what a request authenticates with: a Bearer or Token in
// Authorization, or X-Api-Key; "" if there is nothing.
func Credential(r *http.Request) string {
	if v := r.Header.Get("Authorization"); v != "" {
		scheme, key, ok := strings.Cut(v, " ")
		if ok && (strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Token")) {
			return strings.TrimSpace(key)
		}
		return ""
	}
	return r.Header.Get("X-Api-Key")
}

// User returns the user whom somebody in front of Remora has authenticated.
func User(r *http.Request) string {
	for _, name := range [...]string{"X-Remora-User", "X-User-Id"} {
		if v := r.Header.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// Target returns whose memory a request is about, by its query and its headers.
func Target(r *http.Request) api.Target {
	q := r.URL.Query()
	t := api.Target{Tenant: q.Get("tenant"), App: q.Get("app"), Project: q.Get("project"), User: q.Get("user")}
	if t.User == "" {
		t.User = q.Get("userId")
	}
	if t.App == "" {
		t.App = r.Header.Get("X-Remora-App")
	}
	if t.Project == "" {
		t.Project = r.Header.Get("X-Remora-Project")
	}
	return t
}

// Decode reads a JSON body of at most limit bytes into v. With strict, fields
// that v does not have are refused. Errors are of api and name the field.
func Decode(r *http.Request, limit int64, strict bool, v any) error {
	body, err := Body(r, limit)
	if err != nil {
		return err
	}
	return DecodeBytes(body, strict, v)
}

// Body reads a body of at most limit bytes.
func Body(r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, api.ErrTooLarge
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	switch {
	case err != nil:
		return nil, &api.FieldError{Field: "body", Why: "broke off"}
	case int64(len(body)) > limit:
		return nil, api.ErrTooLarge
	}
	return body, nil
}

// maxDepth bounds the nesting of a body.
const maxDepth = 64

// DecodeBytes is Decode for a body that was read.
func DecodeBytes(body []byte, strict bool, v any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return &api.FieldError{Field: "body", Why: "is empty; a JSON object is expected"}
	}
	if !utf8.Valid(body) { // encoding/json would put U+FFFD in its place
		return &api.FieldError{Field: "body", Why: "is not valid UTF-8"}
	}
	if depth(body) > maxDepth {
		return &api.FieldError{Field: "body", Why: fmt.Sprintf("is nested deeper than %d", maxDepth)}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return explain(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &api.FieldError{Field: "body", Why: "has more than one JSON value"}
	}
	return nil
}

func depth(body []byte) (deepest int) {
	level, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// explain turns an error of encoding/json into one that names the field.
func explain(err error) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := t.Field
		if field == "" {
			field = "body"
		}
		return &api.FieldError{Field: field, Why: "must be " + kindName(t.Type)}
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &api.FieldError{Field: "body", Why: "is no JSON, at byte " + strconv.FormatInt(s.Offset, 10)}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if name, err := strconv.Unquote(name); err == nil && len(name) <= 64 && plain(name) {
			return &api.FieldError{Field: name, Why: "is no field of this request"}
		}
		return &api.FieldError{Field: "body", Why: "has a field that this request does not have"}
	}
	return &api.FieldError{Field: "body", Why: "is no JSON"}
}

// plain reports whether a field's name may be quoted: it looks like a name.
func plain(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !(r == '_' || r == '-' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z')
	})
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Pointer:
		return kindName(t.Elem())
	}
	return "a number"
}

// Write answers with a JSON value.
func Write(w http.ResponseWriter, status int, v any) {
	b := buffers.Get().(*bytes.Buffer)
	defer func() {
		if b.Cap() <= maxBuffer {
			b.Reset()
			buffers.Put(b)
		}
	}()
	if err := encode(b, v); err != nil {
		problem.New(http.StatusInternalServerError, "internal", "").Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// buffers hold answers until they are written. Larger ones than maxBuffer are
// not kept.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxBuffer = 256 << 10

// Encode returns v as a line of JSON in which <, > and & stand for themselves.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := encode(&b, v)
	return b.Bytes(), err
}

func encode(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Fail answers with the problem of an error. What is Remora's own fault is
// logged.
func Fail(w http.ResponseWriter, log *slog.Logger, err error) {
	p := Problem(err)
	switch p.Status {
	case http.StatusInternalServerError:
		log.Error("the control plane failed", "request", w.Header().Get(HeaderID), "error", err)
	case http.StatusUnauthorized:
		w.Header().Set("Www-Authenticate", "Bearer")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	p.Write(w)
}

// Problem returns the problem of an error.
func Problem(err error) problem.Problem {
	kind, status := api.Kind(err)
	p := problem.New(status, kind, api.Detail(err))
	if field, ok := errors.AsType[*api.FieldError](err); ok {
		p.Field = field.Field
	}
	return p
}

// Number returns a number of the query, 0 if it is not there.
func Number(r *http.Request, name string) (int, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0, &api.FieldError{Field: name, Why: "must be a whole number"}
	}
	return n, nil
}
