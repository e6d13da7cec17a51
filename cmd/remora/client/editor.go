package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// edited has the person change a text in an editor, and returns it without
// blanks at its ends. The text lies in a file of this user meanwhile, in memory
// where the system offers such files.
func (c *Console) edited(ctx context.Context, text string) (string, error) {
	editor := cmp.Or(c.Getenv("VISUAL"), c.Getenv("EDITOR"))
	if editor == "" {
		editor = map[bool]string{true: "notepad", false: "vi"}[runtime.GOOS == "windows"]
	}
	dir, err := os.MkdirTemp(c.Getenv("XDG_RUNTIME_DIR"), "remora-edit-") // "" = the usual place
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "memory.txt")
	if err := os.WriteFile(path, []byte(strings.TrimSpace(text)+"\n"), 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$@"`, editor, path) // it may have arguments
	if runtime.GOOS == "windows" {
		words := strings.Fields(editor)
		cmd = exec.CommandContext(ctx, words[0], append(words[1:], path)...)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.In, c.Out, c.Err
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("the editor failed, and nothing was changed: %w", err)
	}
	changed, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	out := strings.TrimSpace(string(changed))
	if out == "" {
		return "", errors.New("the text is empty, and nothing was changed: remora forget deletes a memory")
	}
	return out, nil
}
