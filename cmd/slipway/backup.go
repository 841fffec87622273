package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"slipway.dev/slipway/cmd/slipway/backup"
	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/inventory"
)

type backupCommand struct {
	File  string `arg:"" help:"File to write; - is standard output."`
	Force bool   `help:"Write over a file that is there."`
}

// Help says what is not in a backup.
func (*backupCommand) Help() string {
	return "The server goes on working. The file holds the whole database, with its secrets sealed. It does not hold the key that opens them " +
		"(secret.key in the data directory): keep a copy of that elsewhere. Nor does it hold the files of images."
}

// Run takes a backup, reads it again to see that it is whole, and only then gives it its name.
func (c *backupCommand) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	if c.File == "-" {
		return api.Backup(s.ctx, s.out)
	}
	if _, err := os.Lstat(c.File); err == nil && !c.Force {
		return inventory.Errorf(inventory.Conflict, "%s exists already", c.File).WithHint("--force writes over it")
	}
	part := c.File + ".part"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return cannotWrite(c.File, err)
	}
	m, err := taken(f, func(w io.Writer) error { return api.Backup(s.ctx, w) })
	err = errors.Join(err, f.Close())
	if err != nil {
		_ = os.Remove(part)
		return err
	}
	if err := os.Rename(part, c.File); err != nil {
		return cannotWrite(c.File, err)
	}
	if d, err := os.Open(filepath.Dir(c.File)); err == nil {
		_ = d.Sync() // the bytes are on disk; the name follows by itself where this does not work
		_ = d.Close()
	}
	return s.showBackup(c.File, m)
}

// taken writes a backup and reads it again.
func taken(f *os.File, take func(io.Writer) error) (m backup.Manifest, err error) {
	if err := take(f); err != nil {
		return m, err
	}
	if err := f.Sync(); err != nil {
		return m, cannotWrite(f.Name(), err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return m, err
	}
	return backup.Read(f, nil)
}

func cannotWrite(path string, err error) error {
	if e := (*os.PathError)(nil); errors.As(err, &e) {
		err = e.Err
	}
	return inventory.Errorf(inventory.Unavailable, "cannot write %s: %v", path, err)
}

func (s *session) showBackup(path string, m backup.Manifest) error {
	if m.SecretN > 0 {
		s.say("the key of its %d secrets is not in it: keep a copy of secret.key elsewhere", m.SecretN)
	}
	return s.show(m, func(t *tableWriter) {
		t.field("file", path)
		t.field("made", timeText(m.At))
		t.field("by slipway", m.Slipway)
		t.field("hosts", fmt.Sprint(m.HostN))
		t.field("secrets, sealed", fmt.Sprint(m.SecretN))
		t.field("artefacts, not in it", fmt.Sprint(len(m.Artefacts)))
	})
}

type restoreCommand struct {
	File    string `arg:"" help:"A backup; - is standard input."`
	DataDir string `default:"/var/lib/slipway" help:"Where a server will find it. No server may use it now." placeholder:"DIR"`
	Force   bool   `help:"Even where there is a database; that is kept under another name."`
}

// Run puts a backup into a data directory.
func (c *restoreCommand) Run(s *session) error {
	f, err := s.open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	out, err := serve.Restore(s.ctx, f, c.DataDir, c.Force)
	if err != nil {
		return err
	}
	switch {
	case out.Manifest.SecretN == 0:
	case !out.HasKey:
		s.say("the key of its %d secrets is missing: put secret.key into %s before the server starts", out.Manifest.SecretN, c.DataDir)
	case out.IsOtherKey:
		s.say("the key in %s is not the one that its %d secrets were sealed with: put the right secret.key there", c.DataDir, out.Manifest.SecretN)
	}
	if out.HeldN > 0 {
		s.say("%d hosts are in maintenance: nobody knows what became of them after the backup. Look them over, then: slipway host maintain NAME --off; for many: slipway host bulk maintain --off --selector SELECTOR", out.HeldN)
	}
	if n := len(out.Missing); n > 0 {
		s.say("%d files of images are missing; copy the folder artefacts, or import the images again (-o json lists them)", n)
	}
	return s.show(out, func(t *tableWriter) {
		t.field("restored", filepath.Join(c.DataDir, "slipway.db"))
		t.field("made", timeText(out.Manifest.At))
		t.field("hosts", fmt.Sprint(out.Manifest.HostN))
		t.field("hosts held", fmt.Sprint(out.HeldN))
		t.field("database before", out.Kept)
		t.field("missing artefacts", fmt.Sprint(len(out.Missing)))
	})
}
