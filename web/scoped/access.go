package scoped

import (
	"time"

	"slipway.dev/slipway/inventory"
)

// accessTx shows the tokens of the caller.
type accessTx struct{ *sight }

// ListTokens implements inventory.AccessTx.
func (t accessTx) ListTokens() ([]inventory.Token, error) {
	return TokensOf(t.all, t.reach.caller.User)
}

// TokensOf returns the tokens of a user.
func TokensOf(tx inventory.Tx, user string) ([]inventory.Token, error) {
	all, err := tx.ListTokens()
	return kept(all, func(k *inventory.Token) (bool, error) { return user != "" && k.User == user, err })
}

// Logins and tokens are of the keeper, or of a token that ListTokens has shown.

func (t accessTx) FindToken(name string) (inventory.Token, error) { return t.all.FindToken(name) }

func (t accessTx) FindTokenByHash(hash string) (inventory.Token, error) {
	return t.all.FindTokenByHash(hash)
}

func (t accessTx) CreateToken(k *inventory.Token, now time.Time) error {
	return t.all.CreateToken(k, now)
}

func (t accessTx) TouchToken(name string, now time.Time) error { return t.all.TouchToken(name, now) }
func (t accessTx) DeleteToken(name string) error               { return t.all.DeleteToken(name) }
func (t accessTx) FindUserBySubject(issuer, subject string) (inventory.User, error) {
	return t.all.FindUserBySubject(issuer, subject)
}

func (t accessTx) NoteLogin(name string, now time.Time) error { return t.all.NoteLogin(name, now) }

func (t accessTx) FindLoginByHash(hash string) (inventory.Login, error) {
	return t.all.FindLoginByHash(hash)
}

func (t accessTx) ListLogins(f inventory.LoginFilter) ([]inventory.Login, error) {
	return t.all.ListLogins(f)
}

func (t accessTx) CreateLogin(l *inventory.Login, now time.Time) error {
	return t.all.CreateLogin(l, now)
}

func (t accessTx) SaveFactors(user string, sealed []byte) error {
	return t.all.SaveFactors(user, sealed)
}
func (t accessTx) TouchLogin(id string, now time.Time) error { return t.all.TouchLogin(id, now) }
func (t accessTx) DeleteLogin(id string) error               { return t.all.DeleteLogin(id) }
func (t accessTx) ForgetLogins(now, idle time.Time, limit int) (int, error) {
	return t.all.ForgetLogins(now, idle, limit)
}

// clusterTx shows everything.
type clusterTx struct{ *sight }

// What clusters may do, and what became of them, needs the role everywhere.

func (t clusterTx) NoteCluster(c *inventory.Cluster) error { return t.all.NoteCluster(c) }

func (t clusterTx) FindClusterAccess(uid string) (inventory.ClusterAccess, error) {
	return t.all.FindClusterAccess(uid)
}

func (t clusterTx) ListClusterAccess() ([]inventory.ClusterAccess, error) {
	return t.all.ListClusterAccess()
}

func (t clusterTx) SaveClusterAccess(a *inventory.ClusterAccess, now time.Time) error {
	return t.all.SaveClusterAccess(a, now)
}

// auditTx shows everything.
type auditTx struct{ *sight }

// The audit asks by itself which entries the caller may read.

func (t auditTx) AddAudit(a *inventory.Audit) error { return t.all.AddAudit(a) }

func (t auditTx) FindAudit(id int64) (inventory.Audit, error) {
	a, err := t.all.FindAudit(id)
	t.tellAudit(&a)
	return a, err
}

func (t auditTx) ListAudits(f inventory.AuditFilter, p inventory.Page) ([]inventory.Audit, error) {
	all, err := t.all.ListAudits(f, p)
	for i := range all {
		t.tellAudit(&all[i])
	}
	return all, err
}

func (t auditTx) WalkAudits(after int64, limit int) ([]inventory.Audit, error) {
	return t.all.WalkAudits(after, limit)
}

// viewTx shows everything.
type viewTx struct{ *sight }

// Views ask by themselves who the caller is; HostExtras is given hosts that were found.

func (t viewTx) FindView(owner, name string) (inventory.View, error) {
	return t.all.FindView(owner, name)
}
func (t viewTx) ListViews(owner string) ([]inventory.View, error)  { return t.all.ListViews(owner) }
func (t viewTx) CreateView(v *inventory.View, now time.Time) error { return t.all.CreateView(v, now) }

func (t viewTx) UpdateView(v *inventory.View, now time.Time) error { return t.all.UpdateView(v, now) }

func (t viewTx) DeleteView(owner, name string) error { return t.all.DeleteView(owner, name) }

func (t viewTx) HostExtras(ids []inventory.HostID) (map[inventory.HostID]inventory.HostExtra, error) {
	return t.all.HostExtras(ids)
}
