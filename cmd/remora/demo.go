package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/export"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/proxytest"
)

func demoCommand() command {
	return command{
		name:    "demo",
		summary: "see it work: a fake model, two conversations, no key, no network",
		usage:   "remora demo [--no-color]",
		define: func(f *pflag.FlagSet) runner {
			plain := f.Bool("no-color", false, "use no colours; NO_COLOR in the environment says the same")
			return func(ctx context.Context, s streams, _ []string) error {
				return demo(ctx, s, !*plain && s.getenv("NO_COLOR") == "" && s.getenv("TERM") != "dumb" && isTerminal(s.out))
			}
		},
	}
}

// The texts of the demo. The fake model below knows only what is in the
// request.
const (
	demoFact     = "My daughter Mia is allergic to peanuts. Her birthday is on 14 March."
	demoOther    = "I work on the billing service; it is written in Go."
	demoQuestion = "Which dessert should I make for my daughter Mia?"

	answerBlind  = "Peanut butter brownies! Every child loves them."
	answerKnows  = "A lemon cake: no peanuts in it, since Mia is allergic to them."
	answerListen = "Thank you, good to know."
)

// demoTimeout limits the whole demo.
const demoTimeout = time.Minute

func demoModel(r proxytest.Recorded) proxytest.Reply {
	if r.Last("user") != demoQuestion {
		return proxytest.Reply{Text: answerListen}
	}
	for _, m := range r.Messages {
		if strings.Contains(m.Text, "allergic to peanuts") {
			return proxytest.Reply{Text: answerKnows}
		}
	}
	return proxytest.Reply{Text: answerBlind}
}

// demo uses colours if color is set. It returns no error only if the second conversation got what was said in
// the first, by one inserted message and no other change.
func demo(ctx context.Context, s streams, color bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "remora-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	model := &proxytest.LLM{Answer: demoModel}
	upstream, stopModel, err := serveDemoModel(ctx, model)
	if err != nil {
		return err
	}
	defer stopModel()
	c := demoConfig(dir, upstream)
	c.Recall.Deadline, c.Recall.FirstDeadline = demoTimeout, demoTimeout // the demo shows what is recalled, however slow the machine
	c.Proxy.RecallDeadline, c.Proxy.FirstDeadline = demoTimeout, demoTimeout
	remora, err := newSystem(c, slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelError})), export.Telemetry{})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- remora.run(running) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()

	show := performance{w: s.out, color: color, model: model, remora: remora}
	return show.play(ctx)
}

// demoConfig is the default configuration with its own ports, its data in dir
// and one person as the only user.
func demoConfig(dir, upstream string) config.Config {
	c := config.Default()
	c.Server.Listen = "127.0.0.1:0"
	c.SetUpstream(upstream)
	c.API.Listen = config.APIOff
	c.Proxy.Identity.Tenant, c.Proxy.Identity.Anonymous = "demo", identity.AnonymousKeyHolder
	c.Storage.Dir = filepath.Join(dir, "data")
	c.Storage.KeyFile = filepath.Join(dir, "store.key")
	c.Store.Isolation, c.Store.ReserveBytes = config.IsolationInline, 0
	c.Settle(config.Place{})
	return c
}

func serveDemoModel(ctx context.Context, model http.Handler) (url string, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: model, ReadHeaderTimeout: demoTimeout}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = server.Close(); <-ended }, nil
}

// performance is a running demo.
type performance struct {
	w      io.Writer
	color  bool
	model  *proxytest.LLM
	remora *system
}

func (p performance) play(ctx context.Context) error {
	if err := until(ctx, func() bool { return p.remora.store.Status().Open }); err != nil {
		return fmt.Errorf("the store does not open: %s", p.remora.store.Status().Reason)
	}
	p.title("Remora stands between an app and a model. The model here is a fake, in this process, and so is Remora.")

	p.title("1. A conversation tells something, another one something else")
	for _, told := range []string{demoFact, demoOther} {
		if _, err := p.say(ctx, told, "on"); err != nil {
			return err
		}
	}
	if err := until(ctx, func() bool { return p.remora.pipeline.Stats().Indexed == 2 }); err != nil {
		return errors.New("what was said did not become memories")
	}

	p.title("2. A new conversation asks, without memory (X-Remora-Memory: off)")
	blind, err := p.say(ctx, demoQuestion, "off")
	if err != nil {
		return err
	}

	p.title("3. And with it")
	knowing, err := p.say(ctx, demoQuestion, "on")
	if err != nil {
		return err
	}

	p.title("What the client sent, and (+) what Remora put in before it went to the model")
	inserted, err := p.diff(knowing)
	if err != nil {
		return err
	}
	p.title("The inserted message reads")
	p.print("", strings.TrimSpace(inserted))
	switch {
	case knowing.status != string(proxy.StatusInjected):
		return fmt.Errorf("the status is %q, not %q", knowing.status, proxy.StatusInjected)
	case knowing.answer != answerKnows:
		return errors.New("the model was not given what the first conversation told")
	case blind.answer != answerBlind || !bytes.Equal(blind.sent, blind.received):
		return errors.New("with memory off, the request changed on its way")
	}
	p.title("It works. `remora serve` does the same for your app: set its base URL to http://127.0.0.1:8787/v1")
	return nil
}

type demoBody struct {
	Model    string        `json:"model"`
	Messages []demoMessage `json:"messages"`
}

type demoMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// spoken is one exchange.
type spoken struct {
	sent, received []byte // request bodies as the client sent and as the model got them
	answer         string
	status         string // X-Remora-Status
}

// say starts a new conversation with one message.
func (p performance) say(ctx context.Context, text, memory string) (spoken, error) {
	var x spoken
	var err error
	x.sent, err = json.Marshal(demoBody{"fake-1", []demoMessage{{"system", "You are helpful."}, {"user", text}}})
	if err != nil {
		return x, err
	}
	url := "http://" + p.remora.server.Addr().String() + "/v1/chat/completions"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(x.sent))
	if err != nil {
		return x, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer demo")
	request.Header.Set("X-Remora-Memory", memory)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return x, err
	}
	defer response.Body.Close()
	var reply struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil || len(reply.Choices) == 0 {
		return x, fmt.Errorf("the model answered %d, and no message", response.StatusCode)
	}
	requests := p.model.Requests()
	x.received = requests[len(requests)-1].Body
	x.answer, x.status = reply.Choices[0].Message.Content, response.Header.Get("X-Remora-Status")
	p.print("user:  ", text)
	p.print("model: ", x.answer)
	p.print("       ", fmt.Sprintf("(X-Remora-Status: %s, X-Remora-Memories: %s)", x.status, response.Header.Get("X-Remora-Memories")))
	return x, nil
}

// diff shows the two bodies as one, and returns the text of the inserted
// message. Anything but one insertion is an error.
func (p performance) diff(x spoken) (inserted string, err error) {
	sent, received := x.sent, x.received
	at := 0
	for at < len(sent) && at < len(received) && sent[at] == received[at] {
		at++
	}
	extra := len(received) - len(sent)
	if extra <= 0 || !bytes.Equal(sent[at:], received[at+extra:]) {
		return "", errors.New("the request differs by something else than one insertion")
	}
	var before, after bytes.Buffer
	if err := errors.Join(json.Indent(&before, sent, "  ", "  "), json.Indent(&after, received, "  ", "  ")); err != nil {
		return "", err
	}
	old, now := strings.Split(before.String(), "\n"), strings.Split(after.String(), "\n")
	same := 0
	for same < len(old) && old[same] == now[same] {
		same++
	}
	// Both messages begin alike: show the whole new one as new, not its end and
	// the beginning of the other.
	lines := len(now) - len(old)
	for same > 0 && now[same-1] == now[same+lines-1] && strings.TrimSpace(now[same]) != "{" {
		same--
	}
	for i, line := range now {
		if i >= same && i < same+lines {
			p.highlight("+ " + strings.TrimPrefix(line, "  "))
			continue
		}
		p.print("  ", strings.TrimPrefix(line, "  "))
	}
	p.print("", fmt.Sprintf("\n%d unchanged bytes, %d bytes inserted after the first %d of them.", len(sent), extra, at))
	var body demoBody
	if err := json.Unmarshal(received, &body); err != nil {
		return "", err
	}
	for _, m := range body.Messages {
		if strings.Contains(m.Content, demoFact) {
			inserted = m.Content
		}
	}
	return inserted, nil
}

func (p performance) title(text string) {
	if p.color {
		text = "\x1b[1m" + text + "\x1b[0m"
	}
	fmt.Fprintf(p.w, "\n%s\n\n", text)
}

func (p performance) print(indent, text string) { fmt.Fprintln(p.w, indent+text) }

func (p performance) highlight(line string) {
	if p.color {
		line = "\x1b[32m" + line + "\x1b[0m"
	}
	fmt.Fprintln(p.w, line)
}
