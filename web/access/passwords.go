package access

import (
	"net/netip"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

const (
	failureEvery  = time.Second     // one failed try per source and second,
	failureBurst  = 20              // and so many at once
	passwordEvery = 5 * time.Second // the same per name of a user and source
	passwordBurst = 10
)

// passwords compares passwords with those of users, and slows down whoever tries many.
type passwords struct {
	store   inventory.Store    // the whole
	hashes  *hashers           // of strangers,
	inner   *hashers           // and of known browsers and those who are logged in: no flood of strangers takes their turn
	names   *tries[string]     // by user, known or not, and address or known browser
	sources *tries[netip.Addr] // wrong passwords and tokens, by address
}

func newPasswords(store inventory.Store, now func() time.Time) *passwords {
	return &passwords{
		store: store, hashes: newHashers(hashersMax()), inner: newHashers(1),
		names: newTries[string](now, passwordEvery, passwordBurst), sources: newTries[netip.Addr](now, failureEvery, failureBurst),
	}
}

// withPassword finds the user with a name and a password. Whether there is such a user shows neither in the answer nor in how
// long it takes. Wrong ones are counted by address, and by user and address; a browser in which the user has logged in before is
// counted by itself, so that strangers keep nobody out.
func (p *passwords) withPassword(req *rest.Request, b browser, name, password string) (u inventory.User, err error) {
	// Blanks and capitals do not make another user, so they must not lead to another count of tries.
	name = strings.ToLower(strings.TrimSpace(inventory.Clean(name, 63)))
	source := rest.SourceKey(req.Caller.Source)
	hashes, isKnown, key := p.hashes, b.knows(name), name+" from "+source.String()
	if isKnown {
		hashes, key = p.inner, name+" browser "+b.ID
	} else if err := p.sources.allowed(source, "too many wrong tokens and passwords from this address"); err != nil {
		return u, err
	}
	// Both checks come before the hash: a refused try costs next to nothing.
	if err := p.names.allowed(key, "too many wrong passwords for this user"); err != nil {
		return u, err
	}
	err = p.store.Read(req, func(tx inventory.Tx) error {
		u, err = tx.Users().Find(name)
		return err
	})
	// An unknown name goes on with an empty hash, which costs as much time as a real one.
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return u, err
	}
	isRight, err := hashes.matches(req, u.PasswordHash, password)
	if err != nil {
		return u, err
	}
	if !isRight {
		p.names.failed(key)
		// Wrong passwords from a known browser do not count against its address, which a whole office may share.
		if !isKnown {
			p.sources.failed(source)
		}
		return inventory.User{}, inventory.Errorf(inventory.Unauthorized, "there is no such user, or the password is another").
			WithHint("an admin can set a new password on the server: slipway user password NAME")
	}
	if u.IsDisabled { // who knows the password may know this too
		return u, errDisabled(u.Name)
	}
	return u, nil
}

// checkOld refuses a change of one's own password without the old one. Wrong ones are counted by login: whoever has got hold of
// one does not guess on, and nobody else is kept from it.
func (p *passwords) checkOld(req *rest.Request, u inventory.User, old string) error {
	key := u.Name + " login " + req.Caller.Login
	if err := p.names.allowed(key, "too many wrong passwords for this user"); err != nil {
		return err
	}
	isRight, err := p.inner.matches(req, u.PasswordHash, old)
	if err != nil || isRight {
		return err
	}
	p.names.failed(key)
	return inventory.Errorf(inventory.Forbidden, "the old password is another").WithHint("an admin can set a new one: slipway user password %s", u.Name)
}

func errDisabled(name string) error {
	return inventory.Errorf(inventory.Unauthorized, "user %s is disabled", name).WithHint("an admin can change that: slipway user enable %s", name)
}
