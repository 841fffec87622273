package sqlstore

import (
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
)

// The plain nouns. Each is a table and an accessor.

var acceptRules = newTable(noun.AcceptRules, table[inventory.AcceptRule]{
	kept:   "accept rules",
	fixed:  columns(`name`),
	edited: columns(`selector`),
	cells:  func(r *inventory.AcceptRule) []cell { return []cell{textCell(&r.Name), textCell(&r.Selector)} },
})

// AcceptRules implements inventory.RecordTx.
func (t recordTx) AcceptRules() inventory.Records[inventory.AcceptRule] {
	return records[inventory.AcceptRule]{table: acceptRules, tx: t.tx}
}

var classes = newTable(noun.Classes, table[inventory.Class]{
	kept:   "classes",
	fixed:  columns(`name`),
	edited: columns(`vendor_classes user_classes archs mac_prefixes priority options options6`),
	cells: func(c *inventory.Class) []cell {
		return []cell{
			textCell(&c.Name),
			jsonCell(&c.VendorClasses), jsonCell(&c.UserClasses), jsonCell(&c.Archs), jsonCell(&c.MACPrefixes),
			numberCell(&c.Priority),
			jsonCell(&c.Options), jsonCell(&c.Options6),
		}
	},
})

// Classes implements inventory.RecordTx.
func (t recordTx) Classes() inventory.Records[inventory.Class] {
	return records[inventory.Class]{table: classes, tx: t.tx}
}

var clusters = newTable(noun.Clusters, table[inventory.Cluster]{
	fixed:  columns(`name state reason hint uid kubernetes seen_at`),
	edited: columns(`kubeconfig modes namespaces watch_filter takes_over`),
	cells: func(c *inventory.Cluster) []cell {
		return []cell{
			textCell(&c.Name), textCell(&c.State), textCell(&c.Reason), textCell(&c.Hint), textCell(&c.UID), textCell(&c.Kubernetes),
			moment{&c.SeenAt},
			textCell(&c.Kubeconfig), jsonCell(&c.Modes), jsonCell(&c.Namespaces), textCell(&c.WatchFilter),
			boolean{&c.TakesOver},
		}
	},
})

// Clusters implements inventory.RecordTx.
func (t recordTx) Clusters() inventory.Records[inventory.Cluster] {
	return records[inventory.Cluster]{table: clusters, tx: t.tx, may: func(c *inventory.Cluster, _ bool) error {
		found, err := secrets.has(t.tx, c.Kubeconfig)
		if err == nil && !found {
			err = inventory.Errorf(inventory.Invalid, "cluster %s names secret %s as its kubeconfig, which does not exist", c.Name, c.Kubeconfig).
				WithHint("store it first: slipway secret set %s --file KUBECONFIG", c.Kubeconfig)
		}
		return err
	}}
}

var goldens = newTable(noun.Goldens, table[inventory.Golden]{
	fixed:  columns(`name`),
	edited: columns(`selector requirements firmware disk_n port_n dimm_n is_strict`),
	cells: func(g *inventory.Golden) []cell {
		return []cell{
			textCell(&g.Name),
			textCell(&g.Selector), jsonCell(&g.Requirements), jsonCell(&g.Firmware),
			numberCell(&g.DiskN),
			numberCell(&g.PortN),
			numberCell(&g.DIMMN),
			boolean{&g.IsStrict},
		}
	},
})

// Goldens implements inventory.RecordTx.
func (t recordTx) Goldens() inventory.Records[inventory.Golden] {
	return records[inventory.Golden]{table: goldens, tx: t.tx}
}

var joinTargets = newTable(noun.JoinTargets, table[inventory.JoinTarget]{
	kept:  "join targets",
	fixed: columns(`name`),
	edited: columns(`endpoint kubernetes ca kubeconfig token pki certificate_key token_for vip vip_interface vip_image pod_cidr service_cidr
worker_parallelism owner is_init initialized_at consumers`),
	orNull: columns(`kubeconfig token pki certificate_key`),
	cells: func(j *inventory.JoinTarget) []cell {
		return []cell{
			textCell(&j.Name), textCell(&j.Endpoint), textCell(&j.Kubernetes), textCell(&j.CA),
			textCell(&j.Kubeconfig), textCell(&j.Token), textCell(&j.PKI), textCell(&j.CertificateKey),
			span{&j.TokenFor},
			address{&j.VIP},
			textCell(&j.VIPInterface), textCell(&j.VIPImage), textCell(&j.PodCIDR), textCell(&j.ServiceCIDR),
			numberCell(&j.WorkerParallelism),
			textCell(&j.Owner),
			boolean{&j.IsInit},
			moment{&j.InitializedAt},
			jsonCell(&j.Consumers),
		}
	},
})

// JoinTargets implements inventory.RecordTx. The tokens of a target stay when it goes, as history.
func (t recordTx) JoinTargets() inventory.Records[inventory.JoinTarget] {
	return records[inventory.JoinTarget]{table: joinTargets, tx: t.tx, may: func(j *inventory.JoinTarget, _ bool) error {
		for _, u := range []struct{ field, secret string }{
			{"kubeconfig", j.Kubeconfig},
			{"token", j.Token},
			{"pki", j.PKI},
			{"certificateKey", j.CertificateKey},
		} {
			if u.secret == "" {
				continue
			}
			if found, err := secrets.has(t.tx, u.secret); err != nil {
				return err
			} else if !found {
				return inventory.Errorf(inventory.Invalid, "target %s names secret %s as its %s, which does not exist", j.Name, u.secret, u.field).
					WithHint("store it first: slipway secret set %s", u.secret)
			}
		}
		return nil
	}}
}

var pools = newTable(noun.Pools, table[inventory.Pool]{
	fixed:  columns(`name`),
	edited: columns(`selector requirements budget clean min_spare burn_in_for allowed_namespaces owner`),
	cells: func(p *inventory.Pool) []cell {
		return []cell{
			textCell(&p.Name),
			textCell(&p.Selector), jsonCell(&p.Requirements), jsonCell(&p.Budget), textCell(&p.Clean),
			numberCell(&p.MinSpare),
			span{&p.BurnInFor},
			textCell(&p.AllowedNamespaces), textCell(&p.Owner),
		}
	},
})

const poolUserSQL = `SELECT name FROM machines WHERE pool = $1 ORDER BY name LIMIT 1`

// Pools implements inventory.RecordTx.
func (t recordTx) Pools() inventory.Records[inventory.Pool] {
	return records[inventory.Pool]{table: pools, tx: t.tx, leave: func(name string) error { return t.unused("pool", name, "machine", poolUserSQL) }}
}

var racks = newTable(noun.Racks, table[inventory.Rack]{
	key: "id", isDerived: true, order: "site, row, name",
	fixed:  columns(`site row name`),
	edited: columns(`height numbering notes cables`),
	cells: func(r *inventory.Rack) []cell {
		return []cell{
			textCell(&r.Site), textCell(&r.Row), textCell(&r.Name),
			numberCell(&r.Height),
			textCell(&r.Numbering), textCell(&r.Notes), jsonCell(&r.Cables),
		}
	},
})

// Racks implements inventory.RecordTx.
func (t recordTx) Racks() inventory.Records[inventory.Rack] {
	return records[inventory.Rack]{table: racks, tx: t.tx}
}

var secrets = newTable(noun.Secrets, table[inventory.Secret]{
	unlisted: "sealed", kept: "secrets",
	fixed:  columns(`name`),
	edited: columns(`about owner consumers sealed`),
	cells: func(s *inventory.Secret) []cell {
		return []cell{textCell(&s.Name), textCell(&s.About), textCell(&s.Owner), jsonCell(&s.Consumers), sealed{&s.Sealed}}
	},
})

const (
	secretUserSQL    = `SELECT name FROM join_targets WHERE $1 IN (kubeconfig, token, pki, certificate_key) ORDER BY name LIMIT 1`
	clusterSecretSQL = `SELECT name FROM clusters WHERE kubeconfig = $1 ORDER BY name LIMIT 1`
)

// Secrets implements inventory.RecordTx.
func (t recordTx) Secrets() inventory.Records[inventory.Secret] {
	return records[inventory.Secret]{table: secrets, tx: t.tx, leave: func(name string) error {
		if err := t.unused("secret", name, "target", secretUserSQL); err != nil {
			return err
		}
		return t.unused("secret", name, "cluster", clusterSecretSQL)
	}}
}

var users = newTable(noun.Users, table[inventory.User]{
	fixed:  columns(`name login_at factors`),
	edited: columns(`display_name password_hash grants is_disabled issuer subject needs_factor`),
	cells: func(u *inventory.User) []cell {
		return []cell{
			textCell(&u.Name),
			moment{&u.LoginAt},
			sealed{&u.SealedFactors},
			textCell(&u.DisplayName), textCell(&u.PasswordHash), jsonCell(&u.Grants),
			boolean{&u.IsDisabled},
			textCell(&u.Issuer), textCell(&u.Subject),
			boolean{&u.NeedsSecondFactor},
		}
	},
	complete: func(u *inventory.User) {
		u.HasPassword, u.HasSecondFactor = u.PasswordHash != "", len(u.SealedFactors) > 0
		if u.Grants == nil {
			u.Grants = inventory.Grants{}
		}
	},
})

// Users implements inventory.RecordTx.
func (t recordTx) Users() inventory.Records[inventory.User] {
	return records[inventory.User]{table: users, tx: t.tx, may: t.mayBeUser, leave: t.leaveUser}
}

// mayBeUser refuses a subject that another user has. A new user has not logged in, and has no second factor.
func (t recordTx) mayBeUser(u *inventory.User, isNew bool) error {
	if isNew {
		u.LoginAt, u.SealedFactors, u.HasSecondFactor = time.Time{}, nil, false
	}
	u.HasPassword = u.PasswordHash != ""
	if u.Issuer == "" {
		return nil
	}
	other, err := t.access().FindUserBySubject(u.Issuer, u.Subject)
	switch {
	case err == nil && other.Name != u.Name:
		return inventory.Errorf(inventory.Conflict, "that subject is user %s", other.Name).WithHint("one person is one user")
	case err != nil && !inventory.IsKind(err, inventory.NotFound):
		return err
	}
	return nil
}

// leaveUser takes along the tokens and logins of a user.
func (t recordTx) leaveUser(name string) error {
	tokens, err := t.access().ListTokens()
	if err != nil {
		return err
	}
	for _, k := range tokens {
		if k.User != name {
			continue
		}
		if err := t.access().DeleteToken(k.Name); err != nil {
			return err
		}
	}
	_, err = t.write(deleteLoginsOfUserSQL, name)
	return err
}

// columns are names of columns.
func columns(names string) []string { return strings.Fields(names) }
