package mcp

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remora-proxy/remora/api"
)

// pipes are both ends of a connection to Serve.
func pipes(t *testing.T, ctx context.Context, v Verbs, o Options) (transport *sdk.IOTransport, served chan error) {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	served = make(chan error, 1)
	go func() {
		served <- Serve(ctx, v, o, fromClient, toClient)
		_ = toClient.Close()
	}()
	return &sdk.IOTransport{Reader: fromServer, Writer: toServer}, served
}

func ended(t *testing.T, served chan error) {
	t.Helper()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Serve does not end")
	}
}

func TestPipe(t *testing.T) {
	s := newService(t)
	v := Local(s, api.Principal{Admin: true, By: "test"})
	transport, served := pipes(t, t.Context(), v, Options{Version: "9", Target: api.Target{User: "alice"}, Compat: []string{SetSearch}})
	c := dial(t, transport)
	if info := c.InitializeResult(); info.ServerInfo.Version != "9" || !strings.Contains(info.Instructions, "search_memory") {
		t.Errorf("%+v", info)
	}
	var saved results
	c.ok(&saved, "add_memories", `{"text":"I keep bees on the roof."}`)
	contains(t, c.ok(nil, "search_memory", `{"query":"Where are the bees?"}`), "on the roof")
	contains(t, c.ok(nil, "search", `{"query":"bees"}`), `"url":"remora:memory/`+saved.Results[0].ID)
	contains(t, c.ok(nil, "search_memory", `{"query":"bees","user_id":"bob"}`), "Nothing is remembered")
	_ = c.Close()
	ended(t, served)

	// What was saved is there for the next program, and for those over HTTP.
	ctx, stop := context.WithCancel(t.Context())
	transport, served = pipes(t, ctx, Local(s, api.Principal{Admin: true, User: "alice"}), Options{})
	again := dial(t, transport)
	contains(t, again.ok(nil, "list_memories", ""), "on the roof")
	contains(t, again.fails("list_memories", `{"user_id":"bob"}`), noSuch)
	stop()
	ended(t, served)
	contains(t, connect(t, serve(t, s, Options{}), "alice").ok(nil, "list_memories", ""), "on the roof")
}

// TestPipeEnds: the input of a program ends, or is not the protocol.
func TestPipeEnds(t *testing.T) {
	v := Local(newService(t), api.Principal{Admin: true})
	var out bytes.Buffer
	if err := Serve(t.Context(), v, Options{}, strings.NewReader(""), &out); err != nil {
		t.Error(err)
	}
	if err := Serve(t.Context(), v, Options{}, strings.NewReader("hello\n"), &out); err == nil {
		t.Error("what is no JSON is no error")
	}
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n"
	out.Reset()
	if err := Serve(t.Context(), v, Options{}, strings.NewReader(in), &out); err != nil {
		t.Error(err)
	}
	contains(t, out.String(), `"serverInfo":{`, `"remora"`)
}
