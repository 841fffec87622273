package appliance

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"slipway.dev/slipway/cmd/slipway/backup"
	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// BackupCommand is slipway backup.
type BackupCommand struct {
	File  string `arg:"" help:"File to write; - is standard output."`
	Force bool   `help:"Write over a file that is there."`
}

// Help says what is not in a backup.
func (*BackupCommand) Help() string {
	return "The server goes on working. The file holds the whole database, with its secrets sealed. It does not hold the key that opens them " +
		"(secret.key in the data directory): keep a copy of that elsewhere. Nor does it hold the files of images."
}

// Run takes a backup, reads it again to see that it is whole, and only then gives it its name.
func (c *BackupCommand) Run(s *cli.Session, api *client.Client) error {
	if c.File == "-" {
		return api.Backup(s.Ctx, s.Out)
	}
	if _, err := os.Lstat(c.File); err == nil && !c.Force {
		return inventory.Errorf(inventory.Conflict, "%s exists already", c.File).WithHint("--force writes over it")
	}
	part := c.File + ".part"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return cannotWrite(c.File, err)
	}
	m, err := taken(f, func(w io.Writer) error { return api.Backup(s.Ctx, w) })
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
	return showBackup(s, c.File, m)
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

func showBackup(s *cli.Session, path string, m backup.Manifest) error {
	if m.SecretN > 0 {
		s.Say("the key of its %d secrets is not in it: keep a copy of secret.key elsewhere", m.SecretN)
	}
	return s.Show(m, func(t *cli.TableWriter) {
		t.Field("file", path)
		t.Field("made", cli.TimeText(m.At))
		t.Field("by slipway", m.Slipway)
		t.Field("hosts", fmt.Sprint(m.HostN))
		t.Field("secrets, sealed", fmt.Sprint(m.SecretN))
		t.Field("artefacts, not in it", fmt.Sprint(len(m.Artefacts)))
	})
}

// RestoreCommand is slipway restore.
type RestoreCommand struct {
	File    string `arg:"" help:"A backup; - is standard input."`
	DataDir string `help:"Where a server will find it (default /var/lib/slipway). No server may use it now." placeholder:"DIR"`
	Force   bool   `help:"Even where there is a database; that is kept under another name."`

	Config               string `help:"The configuration file of the server, which says where its inventory is." placeholder:"FILE"`
	Database             string `help:"Put it into this PostgreSQL database; no instance may use it now." placeholder:"URL"`
	DatabasePasswordFile string `help:"File with its password (default: systemd's credential database-password, if any)." placeholder:"FILE"`
}

// Run puts a backup into a data directory, or into a PostgreSQL database.
func (c *RestoreCommand) Run(s *cli.Session) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	f, err := s.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	out, err := serve.Restore(s.Ctx, f, o)
	if err != nil {
		return err
	}
	sayRestored(s, out, o.DataDir)
	sayCopied(s, out.Copied)
	return s.Show(out, func(t *cli.TableWriter) {
		if o.Server.URL != "" {
			t.Field("restored", backup.Address(o.Server.URL))
			rowN, _ := out.RowN()
			t.Field("rows", fmt.Sprint(rowN))
		} else {
			t.Field("restored", filepath.Join(o.DataDir, "slipway.db"))
		}
		t.Field("made", cli.TimeText(out.Manifest.At))
		t.Field("hosts", fmt.Sprint(out.Manifest.HostN))
		t.Field("hosts held", fmt.Sprint(out.HeldN))
		t.Field("database before", out.Kept)
		t.Field("missing artefacts", fmt.Sprint(len(out.Missing)))
	})
}

// options say where the backup goes: as the flags say, as the configuration file says, or into the usual data directory.
func (c *RestoreCommand) options() (o backup.Options, err error) {
	cfg := serve.Default()
	if c.Config != "" {
		if err := cfg.ReadFile(c.Config); err != nil {
			return o, err
		}
	}
	o = backup.Options{DataDir: cmp.Or(c.DataDir, cfg.DataDir), Force: c.Force}
	if c.Database != "" {
		o.Server, err = serverOf(c.Database, c.DatabasePasswordFile)
	} else if cfg.Database != "" {
		o.Server, err = storage.Settings{URL: cfg.Database, PasswordFile: cmp.Or(c.DatabasePasswordFile, cfg.DatabasePasswordFile)}.Server()
	}
	return o, err
}
