package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// releaseFiles is what the tests look at of .goreleaser.yaml.
type releaseFiles struct {
	Before struct{ Hooks []string }
	Builds []struct {
		Goos, Goarch, Env, Flags, Ldflags []string
	}
	Archives []struct{ Files []packaged }
	Nfpms    []struct {
		Contents []packaged
		Scripts  map[string]string
	}
	Signs []struct{ Artifacts string }
	Sboms []struct{ Artifacts string }
	Casks []struct{ Manpages []string } `yaml:"homebrew_casks"`
}

type packaged struct {
	Src, Dst string
	Info     struct {
		Group string
		Mode  os.FileMode
	} `yaml:"file_info"`
}

func readRelease(t *testing.T) releaseFiles {
	t.Helper()
	var r releaseFiles
	if err := yaml.Unmarshal([]byte(readRoot(t, ".goreleaser.yaml")), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// readRoot returns a file of the repository, named relative to its root.
func readRoot(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// Archives, the image and "make cross" hold the same bytes: their flags are
// the same, and the platforms are.
func TestReleasedBinariesAreTheSame(t *testing.T) {
	makefile, dockerfile := readRoot(t, "Makefile"), readRoot(t, "Dockerfile")
	const flags = "-s -w -X main.version=% -X main.commit=%"
	with := func(version, commit string) string {
		return strings.Replace(strings.Replace(flags, "%", version, 1), "%", commit, 1)
	}
	for _, tt := range []struct{ file, text, version, commit string }{
		{"Makefile", makefile, "$(VERSION)", "$(COMMIT)"},
		{"Dockerfile", dockerfile, "${VERSION}", "${COMMIT}"},
	} {
		if !strings.Contains(tt.text, with(tt.version, tt.commit)) || !strings.Contains(tt.text, "go build -trimpath -buildvcs=false ") {
			t.Errorf("%s builds with other flags than -trimpath -buildvcs=false and %q", tt.file, with(tt.version, tt.commit))
		}
	}
	b := readRelease(t).Builds[0]
	if want := []string{with("v{{ .Version }}", "{{ .FullCommit }}")}; !slices.Equal(b.Ldflags, want) {
		t.Errorf(".goreleaser.yaml has ldflags %q, want %q", b.Ldflags, want)
	}
	if !slices.Equal(b.Flags, []string{"-trimpath", "-buildvcs=false"}) || !slices.Equal(b.Env, []string{"CGO_ENABLED=0"}) {
		t.Errorf(".goreleaser.yaml builds with %q and %q", b.Flags, b.Env)
	}
	var platforms []string
	for _, system := range b.Goos {
		for _, arch := range b.Goarch {
			platforms = append(platforms, system+"/"+arch)
		}
	}
	if want := "PLATFORMS := " + strings.Join(platforms, " ") + "\n"; !strings.Contains(makefile, want) {
		t.Errorf("the Makefile lacks %q", want)
	}
}

// Everything that is packaged exists, or is made by .ci/assets just before.
func TestReleasePackagesWhatIsThere(t *testing.T) {
	r := readRelease(t)
	if !slices.ContainsFunc(r.Before.Hooks, func(h string) bool { return strings.HasPrefix(h, ".ci/assets dist-assets ") }) {
		t.Errorf("no hook makes dist-assets: %q", r.Before.Hooks)
	}
	assets := readRoot(t, ".ci/assets")
	files := slices.Concat(r.Archives[0].Files, r.Nfpms[0].Contents)
	for _, script := range r.Nfpms[0].Scripts {
		files = append(files, packaged{Src: script})
	}
	for _, f := range files {
		if made, ok := strings.CutPrefix(f.Src, "dist-assets/"); ok {
			if !strings.Contains(assets, "$out/"+strings.TrimSuffix(made, "/*")) {
				t.Errorf("%s is packaged, and .ci/assets does not make it", f.Src)
			}
			continue
		}
		found, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(f.Src)))
		if err != nil || len(found) == 0 {
			t.Errorf("%s is packaged and does not exist", f.Src)
		}
	}
	for _, want := range []string{"LICENSE", "cmd/remora/notices/THIRD_PARTY_NOTICES.txt"} {
		for kind, list := range map[string][]packaged{"archives": r.Archives[0].Files, "packages": r.Nfpms[0].Contents} {
			if !slices.ContainsFunc(list, func(p packaged) bool { return p.Src == want }) {
				t.Errorf("the %s lack %s", kind, want)
			}
		}
	}
	if r.Signs[0].Artifacts != "checksum" || len(r.Sboms) != 2 {
		t.Errorf("got signatures of %q and %d lists of modules", r.Signs[0].Artifacts, len(r.Sboms))
	}
}

// Homebrew installs the manual pages that it is told by name.
func TestReleaseHasAllManualPages(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), []string{"man", dir}, environment(), strings.NewReader(""), io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, page := range pages {
		want = append(want, "man/"+filepath.Base(page))
	}
	if got := slices.Sorted(slices.Values(readRelease(t).Casks[0].Manpages)); !slices.Equal(got, want) {
		t.Errorf("the cask has %q, want %q", got, want)
	}
}

// Chart, components, snippets and compose run the image that a release pushes,
// and the documentation names no other. The release workflow refuses a tag that
// is not the chart's version.
func TestReleaseIsWhatManifestsRun(t *testing.T) {
	var chart struct {
		Version    string
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal([]byte(readRoot(t, "deploy/helm/remora/Chart.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	if chart.AppVersion != "v"+chart.Version {
		t.Errorf("the chart has the version %s, and is for Remora %s", chart.Version, chart.AppVersion)
	}
	workflow, release := readRoot(t, ".github/workflows/release.yml"), readRoot(t, ".goreleaser.yaml")
	for text, want := range map[string]string{
		workflow: "tags: ghcr.io/${{ github.repository }}:${{ github.ref_name }}\n",
		release:  "homepage: https://github.com/remora-proxy/remora\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is nowhere: the image has another name", want)
		}
	}
	if want := `grep -q "^appVersion: \"$GITHUB_REF_NAME\"" deploy/helm/remora/Chart.yaml`; !strings.Contains(workflow, want) {
		t.Errorf("the release workflow lacks %q", want)
	}
	const name = "ghcr.io/remora-proxy/remora"
	for file, want := range map[string]string{
		"deploy/helm/remora/values.yaml":              "\n  repository: " + name + " ",
		"deploy/kustomize/sidecar/sidecar.yaml":       "image: " + name + ":" + chart.AppVersion + " ",
		"deploy/kustomize/shared/remora.yaml":         "image: " + name + ":" + chart.AppVersion + " ",
		"deploy/kustomize/example/kustomization.yaml": "- name: " + name + " ",
		"deploy/snippets/native.yaml":                 "image: " + name + ":" + chart.AppVersion + " ",
		"deploy/snippets/classic.yaml":                "image: " + name + ":" + chart.AppVersion + " ",
		"deploy/snippets/maintenance.yaml":            "image: " + name + ":" + chart.AppVersion + " ",
		"deploy/compose/docker-compose.yaml":          "${REMORA_IMAGE:-" + name + ":" + chart.AppVersion + "}",
		"docs/install.md":                             "image `" + name + "`",
		"docs/kubernetes.md":                          "`" + name + "`",
	} {
		if !strings.Contains(readRoot(t, file), want) {
			t.Errorf("%s lacks %q", file, want)
		}
	}
}

// The unit runs what the packages install, and gives up what the program does
// not need.
func TestUnitIsHardened(t *testing.T) {
	unit := readRoot(t, "deploy/systemd/remora.service")
	for _, want := range []string{
		"Type=notify", "ExecStart=/usr/bin/remora serve", "User=remora", "NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes",
		"PrivateTmp=yes", "PrivateDevices=yes", "MemoryDenyWriteExecute=yes", "SystemCallFilter=@system-service", "CapabilityBoundingSet=",
		"RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX", "UMask=0077", "StateDirectory=remora", "StateDirectoryMode=0700",
		"LoadCredential=store.key:/etc/remora/store.key", "Environment=REMORA_STORAGE_KEY_FILE=%d/store.key", "KillMode=mixed",
	} {
		if !slices.Contains(strings.Split(unit, "\n"), want) {
			t.Errorf("remora.service lacks %q", want)
		}
	}
	installed := map[string]bool{}
	for _, f := range readRelease(t).Nfpms[0].Contents {
		installed[f.Dst] = true
		if f.Dst == "/etc/remora/config.json" && (f.Info.Mode != 0o640 || f.Info.Group != "remora") {
			t.Errorf("%s has mode %v and group %q: it may hold keys", f.Dst, f.Info.Mode, f.Info.Group)
		}
	}
	for _, want := range []string{"/usr/lib/systemd/system/remora.service", "/usr/lib/systemd/system/remora.socket", "/usr/lib/sysusers.d/remora.conf", "/etc/remora/config.json"} {
		if !installed[want] {
			t.Errorf("the packages lack %s", want)
		}
	}
	if user := readRoot(t, "deploy/systemd/sysusers.conf"); !strings.Contains(user, "\nu remora - ") {
		t.Error("sysusers.conf does not make the user of the unit")
	}
}
