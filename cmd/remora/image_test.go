package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The image is built from the top-level directories that the program is made
// of. One that the allow-list of .dockerignore lacks would break the build
// where no test sees it.
func TestImageContext(t *testing.T) {
	root := filepath.Join("..", "..")
	ignore, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	allowed := strings.Fields(string(ignore))
	for _, s := range sources(t) {
		top, _, _ := strings.Cut(s.dir, "/")
		if !slices.Contains(allowed, "!"+top) {
			t.Errorf("%s is not in the build context: .dockerignore lacks !%s", s.file, top)
		}
	}
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(dockerfile)) {
		words := strings.Fields(line)
		if len(words) > 2 && words[0] == "COPY" && !strings.HasPrefix(words[1], "--") {
			for _, source := range words[1 : len(words)-1] {
				if source != "." && !slices.ContainsFunc(allowed, func(a string) bool { return a == "!"+source }) {
					t.Errorf("Dockerfile copies %s, which is not in the build context", source)
				}
				if _, err := os.Stat(filepath.Join(root, source)); err != nil {
					t.Errorf("Dockerfile copies %s: %v", source, err)
				}
			}
		}
	}
}

// The image says what it is, holds the licences, runs without root, and can be
// made again: nothing of it depends on where, when or on what it was built.
func TestImageStages(t *testing.T) {
	build, final, ok := strings.Cut(readRoot(t, "Dockerfile"), "\nFROM ${BASE_IMAGE}\n")
	if !ok {
		t.Fatal("the Dockerfile has no stage on BASE_IMAGE")
	}
	for stage, wants := range map[string][]string{
		build: {
			"FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build", "CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} GOTOOLCHAIN=local",
			`touch -h -d "@${SOURCE_DATE_EPOCH}"`, "cp LICENSE cmd/remora/notices/THIRD_PARTY_NOTICES.txt /image/licenses/",
		},
		final: {
			"org.opencontainers.image.title=", "org.opencontainers.image.source=", "org.opencontainers.image.licenses=\"Apache-2.0\"",
			"org.opencontainers.image.version=\"${VERSION}\"", "org.opencontainers.image.revision=\"${COMMIT}\"",
			"org.opencontainers.image.base.name=\"${BASE_IMAGE}\"", "\nUSER 65532:65532\n", "\nVOLUME /data\n", "\nENTRYPOINT [\"/remora\"]\n",
			"--chown=0:0 /image/ /", "--chown=65532:65532 /volume/ /",
		},
	} {
		for _, want := range wants {
			if !strings.Contains(stage, want) {
				t.Errorf("the Dockerfile lacks %q in its stage", want)
			}
		}
	}
	for line := range strings.Lines(final) {
		if strings.HasPrefix(line, "RUN ") {
			t.Errorf("the last stage runs a program, which an empty base does not have, nor a builder for another platform: %s", line)
		}
	}
}
