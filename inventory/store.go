package inventory

import (
	"context"
	"net/netip"
	"time"
)

// Store keeps the inventory. Every store passes inventory/storetest.
//
// Write runs fn in a transaction that is on disk when Write returns nil. It leaves no trace when fn or the commit fails. fn
// may share a commit with those of other callers, so it must use nothing but tx and be quick. A panic in it is undone and
// becomes an Internal error. When ctx ends before fn's turn, fn is not run and the error is Unavailable. Read runs fn on a
// consistent snapshot. A Tx must not be used after its fn has returned.
//
// Errors are *Error. NotFound is for what is absent. Conflict is for a taken name, address or MAC (the message names the holder), and for
// an update with another Version than the stored one. Unavailable is for a locked database or a full disk, and Internal for the rest.
type Store interface {
	Read(ctx context.Context, fn func(Tx) error) error
	Write(ctx context.Context, fn func(Tx) error) error
}

// Reader is a Store as far as it is read.
type Reader interface {
	Read(ctx context.Context, fn func(Tx) error) error
}

// Read returns what fn finds on a snapshot of a store.
func Read[T any](ctx context.Context, s Reader, fn func(Tx) (T, error)) (found T, err error) {
	err = s.Read(ctx, func(tx Tx) error {
		found, err = fn(tx)
		return err
	})
	return found, err
}

// Tx is what can be done in a transaction: the records of plain nouns, and what has rules of its own. Find returns NotFound
// when there is none; Create and Update fill in Version and the times from now; Delete of what is absent is NotFound. Lists are
// in order of their key and paged by it: a page holds what comes after the key named in the Page.
type Tx interface {
	RecordTx
	HostTx
	NetworkTx
	AddressTx
	ImageTx
	ConfigTx
	SecretTx
	MachineTx
	OperationTx
	HardwareTx
	HistoryTx
	AccessTx
	ClusterTx
	AuditTx
	ViewTx
	InstanceTx
}

// Page is a piece of a list: at most Limit rows (0 means all) whose key comes after After.
type Page struct {
	After string
	Limit int
}

// HostTx reads and writes hosts.
type HostTx interface {
	FindHost(id HostID) (Host, error)
	FindHostByName(name string) (Host, error)
	FindHostByMAC(mac MAC) (Host, error)
	// FindHostByPort finds the host that is pinned to a switch port; see PortName.
	FindHostByPort(port string) (Host, error)
	// IsPortShared reports whether NICs of other hosts belong to a switch port.
	IsPortShared(port string, h HostID) (bool, error)
	// FindHostsByHint returns the hosts with that UUID or serial; an empty hint matches none.
	FindHostsByHint(uuid, serial string) ([]Host, error)
	// ListHosts returns hosts ordered by name, which is also the Page's key.
	ListHosts(f HostFilter, p Page) ([]Host, error)
	CountHosts(f HostFilter) (int, error)
	ListPlaces() ([]HostPlace, error) // of all hosts, ordered by name
	// CreateHost and UpdateHost refuse a pinned profile that is not stored as Invalid.
	CreateHost(h *Host, now time.Time) error
	// UpdateHost stores every field but ClaimID and Machine, and the NICs; h.Version must be the stored one.
	UpdateHost(h *Host, now time.Time) error
	DeleteHost(id HostID) error // a Conflict while it is claimed
	// ListClaimable returns the hosts, cordoned ones included, that are available, not claimed, adopted, protected or in maintenance, and
	// have no open operation, ordered by name. Known ones that have not changed are not read again: nobody may change them.
	ListClaimable(known map[HostID]*Host) ([]Claimable, error)
}

// HostPlace is where a host is: the UI draws racks of ten thousand hosts from it.
type HostPlace struct {
	ID    HostID
	Name  string
	Place Place
}

// Claimable is a host that could be claimed.
type Claimable struct {
	*Host
	InspectionN int  // the number of its newest inspection, 0 for none
	HasPower    bool // its controller can switch it on
}

// HostFilter narrows a list of hosts; empty fields do not.
type HostFilter struct {
	State  State
	Rack   string
	Label  string // key or key=value
	Search string // part of a name, MAC, serial, UUID, manufacturer or product, any case
	Pool   string // claimed by a machine of that pool
}

// NetworkTx reads and writes reservations and leases.
type NetworkTx interface {
	FindReservation(a netip.Addr) (Reservation, error)
	// ListReservations returns those of a subnet, or all for "", ordered by address; the Page's key is the address.
	ListReservations(subnet string, p Page) ([]Reservation, error)
	// CreateReservation and UpdateReservation refuse a machine that has another address in the subnet, and CreateReservation an
	// address that is kept for a machine.
	CreateReservation(r *Reservation, now time.Time) error
	UpdateReservation(r *Reservation, now time.Time) error
	DeleteReservation(a netip.Addr) error

	FindLease(a netip.Addr) (Lease, error)
	ListLeases(subnet string, p Page) ([]Lease, error)
	// ListLeasesOf returns the leases of a network card, the latest first.
	ListLeasesOf(mac MAC) ([]Lease, error)
	// SaveLease writes a lease over whatever held its address.
	SaveLease(l Lease) error
	DeleteLease(a netip.Addr) error
}

// ImageTx reads and writes artefacts.
type ImageTx interface {
	FindArtefact(d Digest) (Artefact, error)
	ListArtefacts(p Page) ([]Artefact, error)
	SaveArtefact(a Artefact) error // again is harmless and changes nothing
	// DeleteArtefact is a Conflict while an image uses it.
	DeleteArtefact(d Digest) error
}

// ConfigTx reads what profiles and layers were, and reads and writes renderings.
type ConfigTx interface {
	FindRevision(k RevisionKind, name string, n int) (Revision, error)
	// ListRevisions returns the revisions of one thing, newest first, at most limit (0 means all) with a lower number
	// than before (0 means all).
	ListRevisions(k RevisionKind, name string, before, limit int) ([]Revision, error)

	FindRendering(d Digest) (Rendering, error)
	// ListRenderings returns what a host was given, latest first, at most limit; 0 means all.
	ListRenderings(host HostID, limit int) ([]Rendering, error)
	// HasRendering reports whether SaveRendering has kept one for a host.
	HasRendering(host HostID, d Digest) (bool, error)
	// SaveRendering keeps a rendering; one that is kept already for that host only becomes its latest.
	SaveRendering(r Rendering) error
}

// SecretTx reads and writes join tokens, deliveries of documents, locks, and the keys of the site.
type SecretTx interface {
	FindJoinToken(id string) (JoinToken, error)
	// FindJoinTokenOf returns the newest token of a session for a target that is minted or spent.
	FindJoinTokenOf(s SessionID, target string) (JoinToken, error)
	ListJoinTokens(target string, states ...JoinTokenState) ([]JoinToken, error) // newest first; of all targets for ""
	SaveJoinToken(t JoinToken) error                                             // creates or overwrites

	FindDelivery(s SessionID, document string) (Delivery, error)
	SaveDelivery(d Delivery) error // creates or overwrites

	// FindLock returns who holds a lock; NotFound when it is free.
	FindLock(name string) (Lock, error)
	ListLocks() ([]Lock, error)
	// SaveLock takes a lock or changes who holds it: the caller has looked, in the same transaction.
	SaveLock(l Lock) error
	DeleteLock(name string) error

	FindSiteKey(name string) (SiteKey, error)
	SaveSiteKey(k SiteKey) error // creates or overwrites
	DeleteSiteKey(name string) error
}

// MachineTx reads and writes what people want, and the claims that bind it to hosts.
type MachineTx interface {
	// Expect says that the transaction is about to read these machines and hosts, and what they hold. A database behind a network then
	// answers all of it at once.
	Expect(all ...Holder)

	FindMachine(name string) (Machine, error)
	FindMachineByUID(uid string) (Machine, error)
	FindMachineByOwner(owner string) (Machine, error)
	// ListMachines returns machines ordered by name, which is also the Page's key.
	ListMachines(f MachineFilter, p Page) ([]Machine, error)
	// ListDueMachines returns those whose NextAt has come, the longest due first.
	ListDueMachines(now time.Time, limit int) ([]Machine, error)
	// CreateMachine and UpdateMachine refuse a profile, image or pool that is not stored as Invalid; the pool DefaultPool may be
	// missing. CreateMachine refuses a taken Owner as a Conflict.
	CreateMachine(m *Machine, now time.Time) error
	// UpdateMachine stores every field but HostID and ClaimID, which follow its claim.
	UpdateMachine(m *Machine, now time.Time) error
	DeleteMachine(name string) error // a Conflict while it has a claim

	// CreateClaim binds a machine to a host, and fills in both. It is a Conflict, naming the other, when either is bound
	// already.
	CreateClaim(c *Claim, now time.Time) error
	FindClaim(id ClaimID) (Claim, error)
	FindClaimOfHost(id HostID) (Claim, error)
	FindClaimOfMachine(uid string) (Claim, error)
	DeleteClaim(id ClaimID) error
}

// MachineFilter narrows a list of machines; empty fields do not.
type MachineFilter struct {
	Pool    string
	Phase   MachinePhase
	Profile string
	// OwnerPrefix is how the owner begins: those of one cluster, one namespace, one kind.
	OwnerPrefix string
}

// OperationTx reads and writes what is being done with hosts.
type OperationTx interface {
	FindOperation(id string) (Operation, error)
	// FindOpenOperation returns what is being done with a host; NotFound when nothing is.
	FindOpenOperation(h HostID) (Operation, error)
	// ListOperations returns operations, latest start first; the Page's key is the id.
	ListOperations(f OperationFilter, p Page) ([]Operation, error)
	// ListDueOperations returns the open ones whose NextAt has come, the longest due first.
	ListDueOperations(now time.Time, limit int) ([]Operation, error)
	// NextDueAt returns the earliest NextAt of open operations and of machines; the zero time when there is none.
	NextDueAt() (time.Time, error)
	// CountOpenOperations counts open operations of a pool that are past StepBudget, by kind; "" counts all pools. lastAt is
	// when the latest of them left StepBudget (its Operation.GrantedAt), ended ones included.
	CountOpenOperations(pool string, kinds ...OperationKind) (n int, lastAt time.Time, err error)
	// CreateOperation is a Conflict that names the other when one is open on that host.
	CreateOperation(o *Operation, now time.Time) error
	UpdateOperation(o *Operation, now time.Time) error // o.Version must be the stored one
}

// HardwareTx reads and writes inspections and reports of hosts, and their controllers.
type HardwareTx interface {
	// FindInspection returns the n-th inspection of a host, or the newest for 0.
	FindInspection(h HostID, n int) (Inspection, error)
	ListInspections(h HostID, limit int) ([]Inspection, error) // newest first; 0 means all
	// LastInspection returns the number of the newest inspection of a host, 0 for none. It reads none of it.
	LastInspection(h HostID) (n int, err error)
	SaveInspection(i *Inspection) error // fills in N
	// ListHeard returns what ports heard by LLDP, for each host that heard anything in its last two inspections.
	ListHeard() (map[HostID]Heard, error)

	SaveReport(r Report) error                                      // creates or overwrites
	ListReports(h HostID, kind string, limit int) ([]Report, error) // newest first; "" means all kinds, 0 no limit

	FindBMC(h HostID) (BMC, error)
	ListBMCs(p Page) ([]BMC, error) // ordered by host id, which is also the Page's key
	// SaveBMC creates a host's BMC when Version is 0, else it must be the stored one. Two hosts may not have the same driver,
	// address and system, unless that is wol or manual: a Conflict that names the other.
	SaveBMC(b *BMC, now time.Time) error
	DeleteBMC(h HostID) error
}

// HistoryTx reads and writes what happened: boot sessions, events, issues.
type HistoryTx interface {
	FindSession(id SessionID) (BootSession, error)
	// FindOpenSession returns the latest session of the MAC that has not ended.
	FindOpenSession(mac MAC) (BootSession, error)
	// ListSessions returns a host's sessions, or all for "", latest start first; the Page's key is the id.
	ListSessions(host HostID, p Page) ([]BootSession, error)
	// ListOpenSessions returns those without outcome whose last event is older than before.
	ListOpenSessions(before time.Time) ([]BootSession, error)
	SaveSession(s BootSession) error // creates or overwrites
	AddEvent(events ...*Event) error // ID is filled in before Write returns; Data comes back as JSON decodes it
	// ListEvents returns events with an id above after, oldest first unless the filter has a Before, at most limit; 0 means all.
	ListEvents(f EventFilter, after int64, limit int) ([]Event, error)
	// LastEventID returns the id of the newest event, 0 if there is none.
	LastEventID() (int64, error)

	// ForgetHistory deletes up to limit each of the oldest events, ended sessions and closed issues that are from before
	// then, and returns how many rows went. The newest event stays, so that ids never repeat.
	ForgetHistory(before time.Time, limit int) (n int, err error)

	// OpenIssue opens the issue, or counts it as seen again if one with its Key is open; it reports which. ID comes before Write returns.
	OpenIssue(i *Issue, now time.Time) (opened bool, err error)
	// CloseIssue closes the open issue with that key; closed is false if there is none.
	CloseIssue(key string, now time.Time) (closed bool, err error)
	FindIssue(id int64) (Issue, error)
	// ListIssues returns open issues, or all, newest first.
	ListIssues(all bool, host HostID) ([]Issue, error)
}

// EventFilter narrows events; empty fields do not.
type EventFilter struct {
	HostID    HostID
	SessionID SessionID
	Kind      string // a kind, or the part before its dot
	Before    int64  // only ids below it, and then newest first; 0 for oldest first
}

// ClusterTx reads and writes what became of attached clusters, and what an admin lets them do.
type ClusterTx interface {
	// NoteCluster stores what became of a cluster, from State to SeenAt. That is no new version.
	NoteCluster(c *Cluster) error

	// FindClusterAccess returns what an admin lets a cluster do, by its UID; nothing but the UID when no admin has said
	// anything.
	FindClusterAccess(uid string) (ClusterAccess, error)
	ListClusterAccess() ([]ClusterAccess, error) // ordered by UID
	// SaveClusterAccess stores it; saying nothing deletes it.
	SaveClusterAccess(a *ClusterAccess, now time.Time) error
}

// LoginFilter narrows a list of logins; empty fields do not.
type LoginFilter struct {
	User  string
	Token string
}

// AccessTx reads and writes API tokens and logins.
type AccessTx interface {
	FindToken(name string) (Token, error)
	FindTokenByHash(hash string) (Token, error)
	ListTokens() ([]Token, error)
	CreateToken(t *Token, now time.Time) error // its user must be stored
	TouchToken(name string, now time.Time) error
	DeleteToken(name string) error // its logins go with it

	FindUserBySubject(issuer, subject string) (User, error)
	// NoteLogin stores that a user has logged in. That is no new version.
	NoteLogin(name string, now time.Time) error

	FindLoginByHash(hash string) (Login, error)
	ListLogins(f LoginFilter) ([]Login, error) // newest first
	CreateLogin(l *Login, now time.Time) error
	// SaveFactors stores the sealed second factors of a user, nil for none. The user's version stays.
	SaveFactors(user string, sealed []byte) error
	TouchLogin(id string, now time.Time) error
	DeleteLogin(id string) error
	// ForgetLogins deletes up to limit logins that have expired, or were last seen before idle.
	ForgetLogins(now, idle time.Time, limit int) (n int, err error)
}

// AuditTx keeps what callers have asked for. Nothing of it is ever changed or deleted.
type AuditTx interface {
	AddAudit(a *Audit) error // fills in ID and Hash
	FindAudit(id int64) (Audit, error)
	// ListAudits returns what was asked for, latest first, without Before and After; the Page's key is the id.
	ListAudits(f AuditFilter, p Page) ([]Audit, error)
	// WalkAudits returns whole entries in their order, those after an id.
	WalkAudits(after int64, limit int) ([]Audit, error)
}

// ViewTx reads and writes views of the hosts, and the extra columns of a list of hosts.
type ViewTx interface {
	FindView(owner, name string) (View, error)
	// ListViews returns the views of an owner and those that all share, in order of name and owner.
	ListViews(owner string) ([]View, error)
	CreateView(v *View, now time.Time) error
	UpdateView(v *View, now time.Time) error // v.Version must be the stored one
	DeleteView(owner, name string) error

	// HostExtras returns what other tables know of hosts that the caller has found; hosts that do not exist are left out.
	HostExtras(ids []HostID) (map[HostID]HostExtra, error)
}

// HostExtra is what other tables know of a host, as far as a list shows it.
type HostExtra struct {
	Driver      BMCDriver // "" without controller
	Power       PowerState
	IsReachable bool
	Pool        string     // of the machine that has it
	Address     netip.Addr // the one leased last to any of its ports
}
