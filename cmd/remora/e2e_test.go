package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// The scripts run this test binary again under these names.
func TestMain(m *testing.M) {
	// The race detector has every process sleep for a second at its end, and
	// these tests start hundreds.
	if race := os.Getenv("GORACE"); !strings.Contains(race, "atexit_sleep_ms") {
		_ = os.Setenv("GORACE", strings.TrimSpace(race+" atexit_sleep_ms=0"))
	}
	testscript.Main(m, map[string]func(){
		"remora":     func() { os.Exit(mainExit()) },
		"model":      func() { endOnInterrupt(); exit(model(os.Args[1:])) },
		"embeddings": func() { endOnInterrupt(); exit(embeddings(os.Args[1], os.Args[2])) },
		"await":      func() { exit(await(os.Args[1], patience)) },
		"ask":        func() { exit(ask(os.Args[1:])) },
	})
}

// endOnInterrupt has a process end when its script does, also where interrupts
// are ignored, as they are by whatever a shell runs in the background.
func endOnInterrupt() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	go func() { <-c; os.Exit(0) }()
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// patience bounds every wait of the scripts. Nothing that works takes as long,
// on a busy machine neither.
const patience = time.Minute

// model serves a fake LLM. model ADDRESS [DELAY between the events of a stream]
func model(args []string) error {
	llm := &proxytest.LLM{Answer: func(r proxytest.Recorded) proxytest.Reply {
		var seen []string
		for _, m := range r.Messages {
			seen = append(seen, m.Text)
		}
		return proxytest.Reply{Text: "seen: " + strings.Join(seen, " / ")}
	}}
	if len(args) > 1 {
		delay, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		llm.Delay = delay
	}
	return (&http.Server{Addr: args[0], Handler: llm, ReadHeaderTimeout: patience}).ListenAndServe()
}

// embeddings serves vectors made of the texts' letters and writes what it is
// sent to a file, a text a line.
func embeddings(address, seen string) error {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Input []string }
		if json.NewDecoder(r.Body).Decode(&ask) != nil {
			return // await
		}
		f, err := os.OpenFile(seen, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer f.Close()
		if r.Header.Get("Authorization") != "Bearer hush-hush" {
			fmt.Fprintln(f, "no key")
		}
		var data []map[string]any
		for i, text := range ask.Input {
			fmt.Fprintln(f, text)
			v := make([]float64, 64)
			for _, letter := range text {
				v[letter%64]++
			}
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	})
	return (&http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: patience}).ListenAndServe()
}

// await returns once something answers at a URL. Patience is counted in tries,
// since a machine may be suspended.
func await(url string, patience time.Duration) error {
	const pause = 10 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		response, err := http.Get(url)
		if err == nil {
			response.Body.Close()
			return nil
		}
		if waited >= patience {
			return err
		}
		time.Sleep(pause)
	}
}

// ask starts a new conversation and prints what came back: code, status and
// number of memories, then the body. With -until it asks again until status and
// number match.
func ask(args []string) error {
	f := flag.NewFlagSet("ask", flag.ContinueOnError)
	stream := f.Bool("stream", false, "")
	want := f.String("until", "", "")
	memory := f.String("memory", "on", "")
	key := f.String("key", "", "")
	user := f.String("user", "", "")
	conversation := f.String("conversation", "", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	url, text := f.Arg(0)+"/v1/chat/completions", f.Arg(1)
	body, err := json.Marshal(map[string]any{"model": "fake-1", "stream": *stream, "messages": []any{demoMessage{"user", text}}})
	if err != nil {
		return err
	}
	until, err := regexp.Compile(*want)
	if err != nil {
		return err
	}
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("X-Remora-Memory", *memory)
		if *key != "" {
			request.Header.Set("Authorization", "Bearer "+*key)
		}
		if *user != "" {
			request.Header.Set("X-Remora-User", *user)
		}
		if *conversation != "" {
			request.Header.Set("X-Remora-Conversation", *conversation)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		got := response.Header.Get("X-Remora-Status") + " " + response.Header.Get("X-Remora-Memories")
		if !until.MatchString(got) && time.Since(start) < patience {
			response.Body.Close()
			continue
		}
		fmt.Printf("%d %s\n", response.StatusCode, got)
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			fmt.Println(lines.Text()) // as they come
		}
		response.Body.Close()
		return lines.Err()
	}
}

func TestScripts(t *testing.T) {
	var free addresses
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Deadline:            time.Now().Add(8 * patience), // what hangs is told with its output
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"ADDRESS", "MODEL", "EMBEDDINGS", "CLOSED", "API"} {
				address, err := free.next()
				if err != nil {
					return err
				}
				e.Setenv(name, address)
			}
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("REMORA_LOG_FORMAT", "text")
			e.Setenv("REMORA_API_LISTEN", "off") // its default address is the same for all
			e.Setenv("GORACE", os.Getenv("GORACE"))
			// A busy machine must not decide what is recalled.
			e.Setenv("REMORA_RECALL_DEADLINE", patience.String())
			e.Setenv("REMORA_RECALL_FIRST_DEADLINE", patience.String())
			e.Setenv("REMORA_STORAGE_HANG_TIMEOUT", patience.String())
			// Told, so that the scripts see the same on a machine and in a
			// container.
			e.Setenv("REMORA_IDENTITY_TENANT", "tests")
			e.Setenv("REMORA_IDENTITY_ANONYMOUS", "keyHolder")
			e.Setenv("REMORA_STORAGE_KEY_FILE", filepath.Join(e.WorkDir, "store.key"))
			return os.Mkdir(filepath.Join(e.WorkDir, "home"), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"terminate": terminate,
			"awaitfile": awaitFile,
			"awaitlist": awaitList,
		},
	})
}

// exits CODE COMMAND...: the command exits with that code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failed, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = failed.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code: got %d, want %d", got, want)
	}
}

// terminate sends SIGTERM to the remora that runs in the background.
func terminate(ts *testscript.TestScript, _ bool, _ []string) {
	for _, c := range ts.BackgroundCmds() {
		if filepath.Base(c.Path) == "remora" {
			ts.Check(c.Process.Signal(syscall.SIGTERM))
			return
		}
	}
	ts.Fatalf("no remora runs in the background")
}

// awaitfile FILE TEXT: waits until the file holds the text.
func awaitFile(ts *testscript.TestScript, _ bool, args []string) {
	for start := time.Now(); time.Since(start) < patience; time.Sleep(10 * time.Millisecond) {
		if data, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && strings.Contains(string(data), args[1]) {
			return
		}
	}
	ts.Fatalf("%s does not come to hold %q", args[0], args[1])
}

// awaitlist COUNT REGEXP ARGUMENTS...: waits until so many lines of remora list
// match.
func awaitList(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	line, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	out := ""
	for start := time.Now(); time.Since(start) < patience; time.Sleep(50 * time.Millisecond) {
		ts.Check(ts.Exec("remora", append([]string{"list"}, args[2:]...)...))
		if out = ts.ReadFile("stdout"); len(line.FindAllString(out, -1)) == want {
			return
		}
	}
	ts.Fatalf("remora list does not come to show %d of %q, but:\n%s", want, args[1], out)
}
