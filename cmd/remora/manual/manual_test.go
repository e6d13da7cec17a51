package manual

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestPages(t *testing.T) {
	root := &cobra.Command{Use: "tool"}
	add := &cobra.Command{Use: "add FILE\n\n.hidden files too", Short: "add a file", DisableFlagsInUseLine: true, Run: func(*cobra.Command, []string) {}}
	add.Flags().StringP("mode", "m", `C:\x`, "how it is added")
	add.Flags().Bool("dry-run", false, "only say what would happen")
	secret := &cobra.Command{Use: "secret", Short: "not shown", Hidden: true, Run: func(*cobra.Command, []string) {}}
	root.AddCommand(add, secret)
	p := Program{
		Root: root, Version: "v1.2.3", Date: time.Date(2026, 5, 4, 23, 0, 0, 0, time.UTC),
		Overview: "One line.\n\n'Quoted' first.\n\n    indented\n    twice\n",
	}
	dir := filepath.Join(t.TempDir(), "man")
	if err := p.Write(dir); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"tool.1": `.TH TOOL 1 "2026-05-04" "v1.2.3" "Remora manual"
.SH NAME
tool \- a proxy that gives LLM agents a long\-term memory
.SH SYNOPSIS
.B tool
.I command
[\fIflags\fR]
.SH DESCRIPTION
One line.
.PP
\&'Quoted' first.
.nf
    indented
    twice
.fi
.SH COMMANDS
.TP
\fBtool\-add\fR(1)
add a file
.SH EXIT STATUS
.TP
0
The command is done.
.TP
1
The command failed.
.TP
2
The command was called wrongly.
`,
		"tool-add.1": `.TH TOOL\-ADD 1 "2026-05-04" "v1.2.3" "Remora manual"
.SH NAME
tool\-add \- add a file
.SH SYNOPSIS
.nf
tool add FILE

\&.hidden files too
.fi
.SH OPTIONS
.TP
\fB\-\-dry\-run\fR
only say what would happen
.TP
\fB\-m\fR, \fB\-\-mode\fR \fIstring\fR (default C:\ex)
how it is added
.SH SEE ALSO
.BR tool (1)
`,
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		got, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[e.Name()], string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", e.Name(), diff)
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"tool-add.1", "tool.1"}) {
		t.Errorf("got pages %v", names)
	}
}
