package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// operation is one of the three requests of the protocol.
type operation string

const (
	opRecall operation = "recall"
	opAdd    operation = "add"
	opFlush  operation = "flush"
)

var operations = [...]operation{opRecall, opAdd, opFlush}

func (o operation) path() string {
	if o == opRecall {
		return "/memories/search"
	}
	return "/memories/" + string(o)
}

// Category is how a request to the gateway failed.
type Category string

const (
	Timeout      Category = "timeout"      // no answer in time
	Refused      Category = "refused"      // no connection, or it broke
	Unauthorized Category = "unauthorized" // status 401
	BadStatus    Category = "status"       // any other that is no success; redirects are not followed
	InvalidJSON  Category = "invalid_json"
	WrongShape   Category = "wrong_shape" // JSON without a list of results, or more than is read
	Canceled     Category = "canceled"    // the client of the proxy left, or Remora stops
	Paused       Category = "paused"      // not asked, because searches have failed
)

// Categories lists them.
func Categories() []Category {
	return []Category{Timeout, Refused, Unauthorized, BadStatus, InvalidJSON, WrongShape, Canceled, Paused}
}

// failure is a failed request. It has no part of what was sent or received.
type failure struct {
	op       operation
	category Category
	status   int // 0 = no answer
}

func (f *failure) Error() string {
	if f.status != 0 {
		return fmt.Sprintf("memory gateway: %s: %s (status %d)", f.op, f.category, f.status)
	}
	return fmt.Sprintf("memory gateway: %s: %s", f.op, f.category)
}

// identity is in the body of every request.
type identity struct {
	UserID    string `json:"user_id"`
	UserKey   string `json:"user_key"`
	AppID     string `json:"app_id"`
	ProjectID string `json:"project_id"`
}

func (g *Gateway) identity() identity {
	return identity{g.cfg.UserID, g.cfg.UserKey.Reveal(), g.cfg.AppID, g.cfg.ProjectID}
}

// maxResponse limits what is read of a response, in bytes.
const maxResponse = 1 << 20

// post makes one attempt and returns the body and the status of a success.
func (g *Gateway) post(ctx context.Context, op operation, body any) (content []byte, status int, failed *failure) {
	limit := g.cfg.Timeout
	if op == opRecall {
		limit = min(limit, g.cfg.RecallTimeout)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sent, err := json.Marshal(body)
	if err != nil {
		return nil, 0, &failure{op: op, category: WrongShape}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.base+op.path(), bytes.NewReader(sent))
	if err != nil {
		return nil, 0, &failure{op: op, category: Refused}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "remora")
	response, err := g.http.Do(r)
	if err != nil { // its text has the URL
		return nil, 0, &failure{op: op, category: categoryOf(ctx, err)}
	}
	defer response.Body.Close()
	status = response.StatusCode
	content, err = io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	switch {
	case status == http.StatusUnauthorized:
		return nil, 0, &failure{op, Unauthorized, status}
	case status < 200 || status > 299:
		return nil, 0, &failure{op, BadStatus, status}
	case err != nil:
		return nil, 0, &failure{op, categoryOf(ctx, err), status}
	case len(content) > maxResponse:
		return nil, 0, &failure{op, WrongShape, status}
	}
	return content, status, nil
}

// categoryOf returns the category of a transport's error.
func categoryOf(ctx context.Context, err error) Category {
	var network net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, context.Canceled), ctx.Err() != nil:
		return Canceled
	case errors.As(err, &network) && network.Timeout():
		return Timeout
	}
	return Refused
}
