//go:build unix && !race

package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// pageView is a script of testdata/page, which is a subtest of that name.
type pageView struct {
	name string
	own  *pageOptions // a Remora of its own, nil = the one that all others share
}

// pageMany is how many memories the user of a large store has.
const pageMany = 100_000

// pagePrices are made up.
const pagePrices = `[
	{"model": "gpt-*", "currency": "USD", "input": 1.25, "cacheRead": 0.125, "output": 10},
	{"model": "claude-*", "currency": "USD", "input": 3, "cacheRead": 0.3, "cacheWrite": 3.75, "output": 15}
]`

// pageViews are in the order in which they run. Those that share a Remora change
// nothing in it, but for live, which adds exchanges and is the last of them.
var pageViews = []pageView{
	{name: "smoke"},
	{name: "memories", own: &pageOptions{hostile: true}},
	{name: "try"},
	{name: "benefit"},
	{name: "health"},
	{name: "two-users"},
	{name: "keyboard"},
	{name: "live"},
	{name: "receipt", own: &pageOptions{hostile: true}},
	{name: "memory", own: &pageOptions{hostile: true}},
	{name: "review", own: &pageOptions{hostile: true}},
	{name: "people", own: &pageOptions{hostile: true}},
	{name: "import", own: &pageOptions{}},
	{name: "nojs", own: &pageOptions{hostile: true}},
	{name: "speed", own: &pageOptions{many: pageMany}},
}

// pageHelpers are scripts of testdata/page that are no views.
var pageHelpers = []string{"lib", "screenshot"}

// TestPage drives the page of the control plane with a browser, one script for
// each view, on a Remora with real exchanges.
//
// The race detector makes a Remora with 100,000 memories too slow for anybody to
// wait for; the tests of api/page run with it.
//
// REMORA_PAGE_STAY=1 and -run 'TestPage$/stay' seed one for a person to look at.
// REMORA_SHOTS names a directory for pictures of each view.
func TestPage(t *testing.T) {
	if os.Getenv("REMORA_PAGE_STAY") != "" {
		t.Run("stay", stayPage)
		return
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	tools := findPageTools(t)
	checkPageScripts(t)
	var shared *pageRig
	for _, v := range pageViews {
		file := filepath.Join("testdata", "page", v.name+".mjs")
		t.Run(v.name, func(sub *testing.T) {
			if v.own != nil {
				sub.Parallel()
				o := *v.own
				o.prices = pagePrices
				tools.run(sub, startPage(sub, o), file)
				return
			}
			if shared == nil {
				shared = startPageFor(sub, t, pageOptions{hostile: true, prices: pagePrices})
			}
			shared.t = sub
			tools.run(sub, shared, file)
		})
	}
	if picture := os.Getenv("REMORA_PAGE_PICTURE"); picture != "" {
		t.Run("screenshot", func(sub *testing.T) {
			tools.run(sub, startPage(sub, pageOptions{}), filepath.Join("testdata", "page", "screenshot.mjs"), "REMORA_PAGE_PICTURE="+picture)
		})
	}
}

// checkPageScripts fails if there is a script that is never run.
func checkPageScripts(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "page", "*.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".mjs")
		if !slices.Contains(pageHelpers, name) && !slices.ContainsFunc(pageViews, func(v pageView) bool { return v.name == name }) {
			t.Errorf("%s is not in pageViews", file)
		}
	}
}

// pageTools is what scripts need besides a Remora.
type pageTools struct {
	modules  string // the directory with node_modules
	chromium string
}

// findPageTools returns the tools. Without them the test is skipped, and fails
// where everything is to be tested.
func findPageTools(t *testing.T) pageTools {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("CI") == "true" {
		missing = t.Fatalf
	}
	tools := pageTools{modules: os.Getenv("REMORA_NODE_MODULES")}
	for _, name := range []string{"playwright-core", "axe-core"} {
		if _, err := os.Stat(filepath.Join(tools.modules, "node_modules", name, "package.json")); tools.modules == "" || err != nil {
			missing("REMORA_NODE_MODULES does not name a directory in which `npm install %s` was run", name)
		}
	}
	var err error
	if tools.chromium, err = exec.LookPath("chromium"); err != nil {
		missing("chromium is not installed")
	}
	if _, err := exec.LookPath("node"); err != nil {
		missing("node is not installed")
	}
	return tools
}

// run runs a script on a Remora. What the script needs to know is in its
// environment, and nothing else is.
func (p pageTools) run(t *testing.T, r *pageRig, file string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", file)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir(),
		"REMORA_NODE_MODULES=" + p.modules, "REMORA_CHROMIUM=" + p.chromium, "REMORA_SHOTS=" + os.Getenv("REMORA_SHOTS"),
		"REMORA_URL=" + r.url, "REMORA_PROXY=" + r.proxy, "REMORA_TOKEN=" + pageToken, "REMORA_MANY=" + strconv.Itoa(pageMany),
		"REMORA_MALLORY=" + pageMallory,
	}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s\nRemora's log:\n%s", file, err, out, r.log)
		return
	}
	t.Logf("%s", out)
}

// stayPage has a seeded Remora run until it is interrupted.
func stayPage(t *testing.T) {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(interrupted)
	many := 0
	if os.Getenv("REMORA_PAGE_STAY") == "many" {
		many = pageMany
	}
	r := startPage(t, pageOptions{hostile: os.Getenv("REMORA_PAGE_STAY") != "plain", prices: pagePrices, many: many})
	var link struct{ URL string }
	r.rest(http.MethodPost, "/v1/login-links", nil, &link)
	fmt.Fprintf(os.Stderr, "\nopen   %s (once)\npage   %s/login\nkey    %s\nproxy  %s\ndata   %s\nInterrupt ends it.\n\n", link.URL, r.url, pageToken, r.proxy, r.dir)
	select {
	case <-interrupted:
	case err := <-r.ended:
		r.ended <- err
		t.Errorf("serve ended: %v", err)
	case <-t.Context().Done():
	}
}
