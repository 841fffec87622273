package sqlstore

import (
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/inventory/sqlstore/column"
)

// The plain nouns. Each is a table and an accessor.

var acceptRules = newTable(noun.AcceptRules, table[inventory.AcceptRule]{
	kept:   "accept rules",
	fixed:  columns(`name`),
	edited: columns(`selector`),
	cells: func(r *inventory.AcceptRule) []column.Column {
		return []column.Column{column.Text(&r.Name), column.Text(&r.Selector)}
	},
})

// AcceptRules implements inventory.RecordTx.
func (t recordTx) AcceptRules() inventory.Records[inventory.AcceptRule] {
	return records[inventory.AcceptRule]{table: acceptRules, tx: t.tx}
}

var classes = newTable(noun.Classes, table[inventory.Class]{
	kept:   "classes",
	fixed:  columns(`name`),
	edited: columns(`vendor_classes user_classes archs mac_prefixes priority options options6`),
	cells: func(c *inventory.Class) []column.Column {
		return []column.Column{
			column.Text(&c.Name),
			column.JSON(&c.VendorClasses), column.JSON(&c.UserClasses), column.JSON(&c.Archs), column.JSON(&c.MACPrefixes),
			column.Number(&c.Priority),
			column.JSON(&c.Options), column.JSON(&c.Options6),
		}
	},
})

// Classes implements inventory.RecordTx.
func (t recordTx) Classes() inventory.Records[inventory.Class] {
	return records[inventory.Class]{table: classes, tx: t.tx}
}

var clusters = newTable(noun.Clusters, table[inventory.Cluster]{
	kept:   "clusters",
	fixed:  columns(`name state reason hint uid kubernetes seen_at`),
	edited: columns(`kubeconfig modes namespaces watch_filter takes_over`),
	cells: func(c *inventory.Cluster) []column.Column {
		return []column.Column{
			column.Text(&c.Name), column.Text(&c.State), column.Text(&c.Reason), column.Text(&c.Hint), column.Text(&c.UID),
			column.Text(&c.Kubernetes),
			column.Time(&c.SeenAt),
			column.Text(&c.Kubeconfig), column.JSON(&c.Modes), column.JSON(&c.Namespaces), column.Text(&c.WatchFilter),
			column.Bool(&c.TakesOver),
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
	cells: func(g *inventory.Golden) []column.Column {
		return []column.Column{
			column.Text(&g.Name),
			column.Text(&g.Selector), column.JSON(&g.Requirements), column.JSON(&g.Firmware),
			column.Number(&g.DiskN),
			column.Number(&g.PortN),
			column.Number(&g.DIMMN),
			column.Bool(&g.IsStrict),
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
	cells: func(j *inventory.JoinTarget) []column.Column {
		return []column.Column{
			column.Text(&j.Name), column.Text(&j.Endpoint), column.Text(&j.Kubernetes), column.Text(&j.CA),
			column.Text(&j.Kubeconfig), column.Text(&j.Token), column.Text(&j.PKI), column.Text(&j.CertificateKey),
			column.Duration(&j.TokenFor),
			column.Address(&j.VIP),
			column.Text(&j.VIPInterface), column.Text(&j.VIPImage), column.Text(&j.PodCIDR), column.Text(&j.ServiceCIDR),
			column.Number(&j.WorkerParallelism),
			column.Text(&j.Owner),
			column.Bool(&j.IsInit),
			column.Time(&j.InitializedAt),
			column.JSON(&j.Consumers),
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
	kept:   "pools",
	fixed:  columns(`name`),
	edited: columns(`selector requirements budget clean min_spare burn_in_for allowed_namespaces owner`),
	cells: func(p *inventory.Pool) []column.Column {
		return []column.Column{
			column.Text(&p.Name),
			column.Text(&p.Selector), column.JSON(&p.Requirements), column.JSON(&p.Budget), column.Text(&p.Clean),
			column.Number(&p.MinSpare),
			column.Duration(&p.BurnInFor),
			column.Text(&p.AllowedNamespaces), column.Text(&p.Owner),
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
	cells: func(r *inventory.Rack) []column.Column {
		return []column.Column{
			column.Text(&r.Site), column.Text(&r.Row), column.Text(&r.Name),
			column.Number(&r.Height),
			column.Text(&r.Numbering), column.Text(&r.Notes), column.JSON(&r.Cables),
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
	cells: func(s *inventory.Secret) []column.Column {
		return []column.Column{column.Text(&s.Name), column.Text(&s.About), column.Text(&s.Owner), column.JSON(&s.Consumers), column.Bytes(&s.Sealed)}
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
	cells: func(u *inventory.User) []column.Column {
		return []column.Column{
			column.Text(&u.Name),
			column.Time(&u.LoginAt),
			column.Bytes(&u.SealedFactors),
			column.Text(&u.DisplayName), column.Text(&u.PasswordHash), column.JSON(&u.Grants),
			column.Bool(&u.IsDisabled),
			column.Text(&u.Issuer), column.Text(&u.Subject),
			column.Bool(&u.NeedsSecondFactor),
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
	return t.Later(nil, deleteLoginsOfUserSQL, name)
}

// columns are names of columns.
func columns(names string) []string { return strings.Fields(names) }
