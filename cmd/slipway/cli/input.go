package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// maxText is the longest file that is sent to the server as a text.
const maxText = 1 << 20

// ReadText reads a text from a file, or from standard input for "-".
func (s *Session) ReadText(path string) (string, error) {
	in := s.In
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", &inventory.Error{Kind: inventory.Invalid, Msg: "cannot read the file: " + err.Error()}
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxText+1))
	if err != nil {
		return "", &inventory.Error{Kind: inventory.Invalid, Msg: "cannot read " + path + ": " + err.Error()}
	}
	if len(b) > maxText {
		return "", inventory.Errorf(inventory.Invalid, "%s is larger than %d bytes", path, maxText)
	}
	if strings.HasPrefix(string(b), "\x1f\x8b") {
		return "", inventory.Errorf(inventory.Invalid, "%s is compressed with gzip", path).WithHint("unpack it first: gunzip FILE")
	}
	if line, column, what, hint := machineconfig.TextFault(string(b)); line > 0 {
		return "", inventory.Errorf(inventory.Invalid, "%s:%d:%d: %s", path, line, column, what).WithHint("%s", hint)
	}
	return string(b), nil
}

// FileName is what a file is called in findings.
func FileName(path string) string {
	if path == "-" {
		return "<stdin>"
	}
	return path
}

// WithLocal puts local files of a folder into a Butane document. Nothing outside of the folder is read.
func WithLocal(text, name, folder string, format inventory.DocumentFormat) (string, error) {
	if format != inventory.DocButane {
		return "", Usage("leave --document-files out", "only a Butane document names local files")
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", inventory.Errorf(inventory.Invalid, "cannot read the folder: %v", err)
	}
	defer root.Close()
	text, err = ignition.WithLocal(text, func(path string) ([]byte, error) {
		f, err := root.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, maxText+1))
		if err == nil && len(b) > maxText {
			err = fmt.Errorf("%s is larger than %d bytes", path, maxText)
		}
		return b, err
	})
	var said *inventory.Error
	if errors.As(err, &said) {
		return "", inventory.Errorf(inventory.Invalid, "%s:%s", FileName(name), said.Msg).WithHint("%s", said.Hint)
	}
	return text, err
}

// Open opens a file to read; - is standard input.
func (s *Session) Open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(s.In), nil
	}
	f, err := os.Open(name)
	if err != nil {
		if e := (*os.PathError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		return nil, inventory.Errorf(inventory.Invalid, "cannot read %s: %v", name, err)
	}
	return f, nil
}

// ReadSecret reads a secret from a file, or for - from standard input, or from who sits at a terminal. The line end of
// one line, which editors and echo add, is not part of it.
func (s *Session) ReadSecret(what, file string) (string, error) {
	if f, ok := s.In.(*os.File); ok && file == "-" && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintf(s.Err, "%s: ", Plain(what))
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(s.Err)
		if err != nil {
			return "", &inventory.Error{Kind: inventory.Invalid, Msg: "cannot read the " + what + ": " + err.Error()}
		}
		return string(b), nil
	}
	text, err := s.ReadText(file)
	if line := strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"); !strings.Contains(line, "\n") {
		text = line
	}
	return text, err
}
