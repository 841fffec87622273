// Package newcomer makes a new machine an instance of a database. It asks a running instance with the code of an invitation (package
// invite), and checks the answer. Then it writes secret.key, the password of the database and the configuration file. It starts no server.
//
// Start reading at Join. plan.go decides what the configuration file has to say, check.go looks whether all of it works from here, and
// files.go writes.
//
// Until all checks have passed, the machine keeps nothing but a proof: 32 random bytes in the data directory. By these bytes the instance
// knows the machine again when an admin has removed the cause of an error, and starts the command once more.
package newcomer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/cmd/slipway/serve/invite"
	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/postgres"
)

// Joined says what was done.
type Joined struct {
	Instance    string   `json:"instance"`
	From        string   `json:"from"`        // address of the instance that has handed all over
	Fingerprint string   `json:"fingerprint"` // of secret.key
	Database    string   `json:"database"`
	Interfaces  []string `json:"interfaces"`
	Wrote       []string `json:"wrote"` // files that were made or changed
	Kept        []string `json:"kept"`  // files that had everything already
	Notes       []string `json:"notes,omitempty"`
	Next        string   `json:"next"` // the command that starts the server
}

// Join makes this machine an instance. After an error it has written nothing that a server reads, and an admin may try again.
func Join(ctx context.Context, o Options) (out Joined, err error) {
	had, err := readConfig(o.Config)
	if err != nil {
		return out, err
	}
	dataDir := had.dataDir(o.DataDir)
	unlock, err := serve.TakeDataDir(dataDir)
	if err != nil {
		return out, err
	}
	defer unlock()
	if err := isWritable(filepath.Dir(o.Config)); err != nil {
		return out, err
	}
	proof, err := proofFor(dataDir, o.Code.ID())
	if err != nil {
		return out, err
	}
	host, _ := os.Hostname()
	host, _, _ = strings.Cut(host, ".")
	h, from, err := invite.Ask(ctx, o.Addresses, o.Code, invite.Request{
		Proof: proof, Name: o.Name, Host: inventory.NameFrom(host, "slipway"), Version: o.Version,
	})
	if err != nil {
		return out, err
	}
	if err := vet(h); err != nil {
		return out, err
	}
	key, hasKey, err := keys.Compare(dataDir, h.Key)
	if err != nil {
		return out, err
	}
	if key.Fingerprint != h.Fingerprint {
		return out, inventory.Errorf(inventory.Conflict, "the key that %s has sent is damaged", from).WithHint("try again")
	}
	p, err := makePlan(had, h, o, dataDir)
	if err != nil {
		return out, err
	}
	if err := p.check(ctx, h, o.Now); err != nil {
		return out, err
	}
	w := writer{}
	if !hasKey {
		w.file(filepath.Join(dataDir, keys.KeyFile), []byte(strings.TrimSpace(h.Key)+"\n"), secret)
	} else {
		w.kept = append(w.kept, filepath.Join(dataDir, keys.KeyFile))
	}
	p.write(&w)
	if w.err != nil {
		return out, w.err
	}
	_ = os.Remove(proofFile(dataDir)) // it is worth nothing, and ends with the invitation
	at, err := postgres.ReadAddress(p.want.Database)
	if err != nil {
		return out, err
	}
	return Joined{
		Instance: p.want.Instance, From: from, Fingerprint: key.Fingerprint, Database: at.URL, Interfaces: p.want.Interfaces,
		Wrote: w.wrote, Kept: w.kept, Notes: h.Notes, Next: next(o.Config),
	}, nil
}

// vet checks what the package does not check where it uses it. The other end is an instance; still, a text may come from an admin's file.
func vet(h invite.HandOver) error {
	if err := inventory.CheckName("instance", h.Name); err != nil {
		return err
	}
	if strings.ContainsAny(h.Password, "\r\n\x00") {
		return inventory.Errorf(inventory.Conflict,
			"the password of the database has several lines").WithHint("change it, and invite this machine again")
	}
	for i := range h.Notes {
		h.Notes[i] = inventory.Clean(h.Notes[i], 300)
	}
	return nil
}

// usualConfig is the file that the unit in docs/configuration.md names.
const usualConfig = serve.UsualConfig

// next is the command that starts the server.
func next(config string) string {
	for _, dir := range []string{"/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"} {
		if _, err := os.Stat(filepath.Join(dir, "slipway.service")); err == nil && config == usualConfig {
			return "systemctl enable --now slipway"
		}
	}
	return fmt.Sprintf("slipway serve --config %s", config)
}
