package newcomer

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/instance"
	"slipway.dev/slipway/cmd/slipway/serve/invite"
	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

// check looks whether a server with these files would start. The files lie in a folder of their own meanwhile.
func (p *plan) check(ctx context.Context, h invite.HandOver, now func() time.Time) error {
	if err := (storage.Settings{URL: p.want.Database, DataDir: p.want.DataDir}).MayUse(ctx); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(p.want.DataDir, "join-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var w writer
	staged := map[string]string{}
	for name, f := range p.files {
		staged[name] = filepath.Join(dir, name)
		w.file(staged[name], f.Data, secret)
	}
	trial := p.want.WithFiles(staged)
	if p.passwordPath != "" {
		trial.DatabasePasswordFile = filepath.Join(dir, passwordFile)
		w.file(trial.DatabasePasswordFile, []byte(p.password+"\n"), secret)
	}
	if w.err != nil {
		return w.err
	}
	if err := trial.Validate(); err != nil {
		return err
	}
	db := database{trial.Database, p.password}
	if err := db.Read(ctx, func(tx inventory.Tx) error {
		return isOurs(tx, h.Fingerprint, cmp.Or(p.want.Site, instance.DefaultSite))
	}); err != nil {
		return err
	}
	return instance.CheckClock(ctx, db, now)
}

// isOurs refuses a database that belongs to another key or site.
func isOurs(tx inventory.Tx, fingerprint, site string) error {
	has, err := keys.Fingerprint(tx)
	if err != nil {
		return err
	}
	if has != fingerprint {
		return inventory.Errorf(inventory.Conflict,
			"the database that this machine reaches belongs to a key with the fingerprint %q, that of the other "+
				"instances to %q", has, fingerprint).
			WithHint("does the address of the database mean another server here than there?")
	}
	is, err := instance.Site(tx)
	if err == nil && is != site {
		err = inventory.Errorf(inventory.Conflict, "the database is of site %s, and the other instance of site %s", is, site).
			WithHint("does the address of the database mean another server here than there?")
	}
	return err
}

// database reads a PostgreSQL database, and changes nothing. It implements inventory.Reader.
type database struct{ url, password string }

// Read implements inventory.Reader.
func (d database) Read(ctx context.Context, fn func(inventory.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return sqlstore.Peek(d.url, d.password, fn)
}
