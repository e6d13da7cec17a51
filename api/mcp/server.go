package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remora-proxy/remora/api"
)

// session is whom a call is for.
type session struct {
	verbs  Verbs
	who    string // tells callers apart
	target api.Target
	base   string          // where Remora is reached, for links
	gone   context.Context // ends when nobody waits for the answer; may be nil
}

type sessionKey struct{}

// tool is one tool. Its run reads the arguments and calls verbs.
type tool struct {
	name, title, description string
	input                    schema
	output                   schema // nil = text alone
	hints                    hints
	run                      func(c *call) (reply, error)
}

// Calls of tools of one kind, which share what they do.
type (
	graphCall struct{ *call } // of the set reference
	mem0Call  struct{ *call } // of the set mem0
	fileCall  struct{ *call } // of the set memory
)

func onGraph(run func(graphCall) (reply, error)) func(*call) (reply, error) {
	return func(c *call) (reply, error) { return run(graphCall{c}) }
}

func asMem0(run func(mem0Call) (reply, error)) func(*call) (reply, error) {
	return func(c *call) (reply, error) { return run(mem0Call{c}) }
}

func onFiles(run func(fileCall) (reply, error)) func(*call) (reply, error) {
	return func(c *call) (reply, error) { return run(fileCall{c}) }
}

// hints tell a client what a tool does to memory.
type hints struct{ readOnly, destructive, idempotent bool }

// The hints that tools have.
var (
	reads    = hints{readOnly: true, idempotent: true}
	adds     = hints{}
	replaces = hints{destructive: true}
	removes  = hints{destructive: true, idempotent: true}
)

// reply is what a tool answers.
type reply struct {
	text string
	data any // nil = the text alone
}

// call is one call of a tool.
type call struct {
	context.Context
	session
	args args
	face *face
	last int64 // milliseconds: when the last fact of the graph was said
}

// face is a server with its tools.
type face struct {
	server *sdk.Server
	tools  map[string]*tool
	log    *slog.Logger
	locks  locks
}

func newFace(o Options) *face {
	f := &face{tools: map[string]*tool{}, log: o.Log, locks: newLocks()}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	f.server = sdk.NewServer(
		&sdk.Implementation{Name: "remora", Title: "Remora", Version: o.Version},
		&sdk.ServerOptions{
			Instructions: instructionsFor(o.Compat),
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		},
	)
	for _, t := range toolsOf(o.Compat) {
		f.tools[t.name] = t
		f.server.AddTool(t.described(), f.handler(t))
	}
	return f
}

// handler returns what the server calls for a tool.
func (f *face) handler(t *tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		se, _ := ctx.Value(sessionKey{}).(session)
		return f.call(ctx, se, t, req.Params.Arguments), nil
	}
}

// toolsOf returns the tools of Remora with those of the named sets. Of tools
// with one name the last holds.
func toolsOf(sets []string) (out []*tool) {
	byName := map[string]int{}
	add := func(more []tool) {
		for i := range more {
			t := &more[i]
			if at, ok := byName[t.name]; ok {
				out[at] = t
				continue
			}
			byName[t.name] = len(out)
			out = append(out, t)
		}
	}
	add(nativeTools())
	for _, name := range sets {
		switch name {
		case SetMem0:
			add(mem0Tools())
		case SetOpenMemory:
			add(openMemoryTools())
		case SetReference:
			add(graphTools())
		case SetMemory:
			add(memoryTools())
		case SetSearch:
			add(searchTools())
		}
	}
	if slices.Contains(sets, SetMem0) && slices.Contains(sets, SetReference) {
		out[byName["delete_entities"]] = eitherEntities(mem0DeleteEntities(), graphDeleteEntities())
	}
	return out
}

// described returns the tool as clients see it.
func (t *tool) described() *sdk.Tool {
	closed := false
	out := &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description, InputSchema: t.input,
		Annotations: &sdk.ToolAnnotations{
			Title: t.title, ReadOnlyHint: t.hints.readOnly, DestructiveHint: &t.hints.destructive,
			IdempotentHint: t.hints.idempotent, OpenWorldHint: &closed,
		},
	}
	if t.output != nil {
		out.OutputSchema = t.output
	}
	return out
}

// callTimeout bounds a call.
const callTimeout = time.Minute

// call runs a tool. Whatever happens, the answer is a result.
func (f *face) call(
	ctx context.Context, se session, t *tool, raw json.RawMessage,
) (res *sdk.CallToolResult) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if se.gone != nil {
		defer context.AfterFunc(se.gone, cancel)()
	}
	defer func() {
		if p := recover(); p != nil { // its value may hold content
			f.log.Error("panic", "in", "MCP", "tool", t.name, "stack", string(debug.Stack()))
			res = failed(api.Detail(errPanic))
		}
	}()
	given, err := readArgs(raw)
	if err == nil {
		c := &call{Context: ctx, session: se, args: given, face: f}
		if err = c.whose(); err == nil {
			var out reply
			if out, err = t.run(c); err == nil {
				return answered(out)
			}
		}
	}
	if said, ok := errors.AsType[*saidError](err); ok {
		return failed(said.text)
	}
	if kind, _ := api.Kind(err); kind == "internal" {
		f.log.Error("a tool failed", "tool", t.name, "error", err)
	}
	return failed(api.Detail(err))
}

var errPanic = errors.New("panic")

// saidError is an error in the words of another server.
type saidError struct{ text string }

func (e *saidError) Error() string { return "refused in the words of another server" }

func failed(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

func answered(r reply) *sdk.CallToolResult {
	said := []sdk.Content{&sdk.TextContent{Text: r.text}}
	return &sdk.CallToolResult{Content: said, StructuredContent: r.data}
}

// whose takes the user from the arguments, if they name one.
func (c *call) whose() error {
	user, err := c.args.text("user_id", "userId", "user")
	if user != "" {
		c.target.User = user
	}
	return err
}
