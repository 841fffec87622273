package appliance

import (
	"cmp"
	"fmt"
	"strings"

	"slipway.dev/slipway/cmd/slipway/backup"
	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/copying"
	"slipway.dev/slipway/inventory/sqlstore/moving"
)

// DatabaseCommand is slipway database.
type DatabaseCommand struct {
	Move   MoveCommand   `cmd:"" help:"Move the inventory into a PostgreSQL database, or back into a file."`
	NewKey NewKeyCommand `cmd:"" help:"Give the inventory another secret.key, after the former one was lost."`
}

// NewKeyCommand is slipway database new-key.
type NewKeyCommand struct {
	Config  string `help:"The configuration file of the server, which says where its inventory is." placeholder:"FILE"`
	DataDir string `help:"Of the server (default /var/lib/slipway), which must be stopped." placeholder:"DIR"`
	Yes     bool   `help:"Do it: secrets of the former key are lost."`
}

// Help says what is lost.
func (*NewKeyCommand) Help() string {
	return "Stop all servers first, and run this as the user that they run as. The inventory then belongs to the secret.key in the data directory. " +
		"If there is none, the command makes one. Secrets that the key does not open stay, but nobody can use them: set them again. " +
		"The command deletes certificate authorities that it does not open. Clients then have to trust new ones."
}

// Run makes the inventory belong to the key of the data directory.
func (c *NewKeyCommand) Run(s *cli.Session) error {
	if !c.Yes {
		return inventory.Errorf(inventory.Invalid, "secrets and certificate authorities of the former key are lost").
			WithHint("look for secret.key on the other servers and in your copies first; then: slipway database new-key --yes")
	}
	cfg := serve.Default()
	if c.Config != "" {
		if err := cfg.ReadFile(c.Config); err != nil {
			return err
		}
	}
	cfg.DataDir = cmp.Or(c.DataDir, cfg.DataDir)
	out, err := serve.NewKey(s.Ctx, cfg)
	if err != nil {
		return err
	}
	if out.LostN > 0 {
		s.Say("the key does not open %d secrets: set them again", out.LostN)
	}
	if len(out.Deleted) > 0 {
		s.Say("the next start makes new authorities. Remove their old certificates (ca.crt, admin-ca.crt) from %s first", cfg.DataDir)
	}
	return s.Show(out, func(t *cli.TableWriter) {
		t.Field("fingerprint", out.Fingerprint)
		t.Field("before", out.Former)
		t.Field("lost secrets", fmt.Sprint(out.LostN))
		t.Field("deleted certificates", strings.Join(out.Deleted, ", "))
	})
}

// MoveCommand is slipway database move.
type MoveCommand struct {
	To           string `required:"" help:"Where to: postgres://user@host:5432/slipway, or a data directory or new file." placeholder:"URL"`
	From         string `help:"Where from: a data directory, database file, backup, or postgres://... (default: the data directory)." placeholder:"PLACE"`
	PasswordFile string `help:"File with its password (default: systemd's credential database-password, if any)." placeholder:"FILE"`
	DataDir      string `default:"/var/lib/slipway" help:"Of the server, which must be stopped." placeholder:"DIR"`
	DryRun       bool   `help:"Read and check everything, and write nothing. A server may run meanwhile."`
}

// Help says what is the same after a move.
func (*MoveCommand) Help() string {
	return "Stop the server first, and run this as the user that it runs as. All rows move in one transaction, with their ids. " +
		"Slipway counts both sides, and compares a digest (SHA-256) of each table. After an error the target has nothing. " +
		"The old database stays: a file of SQLite gets another name. The key of the secrets (secret.key) and the files of images are not in a database and stay where they are."
}

// Run moves an inventory.
func (c *MoveCommand) Run(s *cli.Session) error {
	from := c.From
	if from == "" {
		from = c.DataDir
	}
	isBack := backup.IsServer(from)
	switch {
	case isBack && backup.IsServer(c.To):
		return inventory.Errorf(inventory.Invalid, "both databases are PostgreSQL").WithHint("pg_dump and pg_restore copy one to the other")
	case !isBack && !backup.IsServer(c.To):
		return inventory.Errorf(inventory.Invalid, "one of the two has to be the address of a PostgreSQL database").
			WithHint("write it as postgres://user@host:5432/slipway?sslmode=verify-full")
	}
	address, file := c.To, from
	if isBack {
		address, file = from, c.To
	}
	server, err := serverOf(address, c.PasswordFile)
	if err != nil {
		return err
	}
	if !isBack && backup.IsBackup(file) {
		return c.fromBackup(s, file, server)
	}
	m, err := serve.Move(s.Ctx, backup.MoveOptions{File: backup.DatabaseFile(file), Server: server, IsBack: isBack, IsDryRun: c.DryRun})
	if err != nil {
		return err
	}
	if err := s.Show(m, func(t *cli.TableWriter) { showTables(t, m.Tables) }); err != nil {
		return err
	}
	sayCopied(s, m.Copied)
	switch {
	case c.DryRun:
		s.Say("a dry run: nothing was written")
		if m.IsInUse {
			s.Say("a server uses %s now: stop it before the move", m.From)
		}
		return nil
	case m.Kept != "":
		s.Say("the old database is %s now; keep it until you are sure", m.Kept)
	}
	if isBack {
		s.Say("next: take database: out of the configuration file (or leave --database out), then start slipway")
		return nil
	}
	sayNext(s, c.To)
	return nil
}

// fromBackup puts a backup into a PostgreSQL database, as slipway restore does: nobody knows what happened after it was made.
func (c *MoveCommand) fromBackup(s *cli.Session, file string, server moving.Database) error {
	f, err := s.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	out, err := serve.Restore(s.Ctx, f, backup.Options{DataDir: c.DataDir, Server: server, IsDryRun: c.DryRun})
	if err != nil {
		return err
	}
	sayRestored(s, out, c.DataDir)
	if err := s.Show(out, func(t *cli.TableWriter) { showTables(t, out.Tables) }); err != nil {
		return err
	}
	sayCopied(s, out.Copied)
	if c.DryRun {
		s.Say("a dry run: nothing was written")
		return nil
	}
	sayNext(s, c.To)
	return nil
}

// serverOf is the PostgreSQL database of an address. A password in an argument is in the list of processes.
func serverOf(address, passwordFile string) (moving.Database, error) {
	if err := storage.CheckFlag(address); err != nil {
		return moving.Database{}, err
	}
	return storage.Settings{URL: address, PasswordFile: passwordFile}.Server()
}

// sayNext says what comes after a move. The address has no password: CheckFlag refuses one.
func sayNext(s *cli.Session, address string) {
	s.Say("next: write database: %s to the configuration file (or give --database), with databasePasswordFile: FILE if it has a password;"+
		" then start slipway", address)
}

// sayCopied says what may be lost, or was changed.
func sayCopied(s *cli.Session, c moving.Copied) {
	if len(c.Risks) > 0 {
		s.Say("the server of the database may lose what it has acknowledged (%s): set these to on", strings.Join(c.Risks, ", "))
	}
	for _, t := range c.Tables {
		for _, r := range t.Changed {
			s.Say("%s: the row %s has bytes in %s that PostgreSQL cannot keep: they become U+FFFD",
				t.Table, strings.Join(r.Key, " "), strings.Join(r.Columns, ", "))
		}
		if n := t.ChangedN - int64(len(t.Changed)); n > 0 {
			s.Say("%s: and %d rows more", t.Table, n)
		}
	}
}

// showTables shows the beginning of each digest: -o json has them whole.
func showTables(t *cli.TableWriter, tables []copying.Result) {
	t.Row("table", "rows", "digest", "digest of the copy", "changed rows")
	short := func(digest string) string { return digest[:min(16, len(digest))] }
	var rowN, changedN int64
	for _, r := range tables {
		t.Row(r.Table, fmt.Sprint(r.RowN), short(r.Digest), short(r.Copy), fmt.Sprint(r.ChangedN))
		rowN, changedN = rowN+r.RowN, changedN+r.ChangedN
	}
	t.Row(fmt.Sprint(len(tables), " tables"), fmt.Sprint(rowN), "", "", fmt.Sprint(changedN))
}

// sayRestored says what a person has to do after a restore.
func sayRestored(s *cli.Session, out backup.Restored, dataDir string) {
	switch {
	case out.Manifest.Key == "":
	case !out.HasKey:
		s.Say("secret.key is missing: put the one with the fingerprint %s into %s before the server starts", out.Manifest.Key, dataDir)
	case out.IsOtherKey:
		s.Say("the key in %s is not that of this inventory: put the secret.key with the fingerprint %s there", dataDir, out.Manifest.Key)
	}
	if out.HeldN > 0 {
		s.Say("%d hosts are in maintenance: nobody knows what became of them after the backup. Look them over, then: slipway host maintain NAME --off; for many: slipway host bulk maintain --off --selector SELECTOR", out.HeldN)
	}
	if n := len(out.Missing); n > 0 {
		s.Say("%d files of images are missing; copy the folder artefacts, or import the images again (-o json lists them)", n)
	}
}
