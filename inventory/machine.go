package inventory

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// ClaimID names one binding of a machine to a host permanently: a ULID. After a new installation a machine has a new one.
type ClaimID string

// Machine is what someone wants: one installed server of a profile.
type Machine struct {
	Name string `json:"name"`
	// UID tells machines of the same name apart that existed one after the other: a ULID.
	UID string `json:"uid"`
	// Owner says who wants it, for machines that are not ours alone: cluster/namespace/kind/name/uid. Unique when set.
	Owner string `json:"owner,omitempty"`

	Profile         string    `json:"profile"`
	ProfileRevision int       `json:"profileRevision,omitempty"` // 0 takes the newest when it is installed
	Pool            string    `json:"pool,omitempty"`
	Placement       Placement `json:"placement,omitzero"`
	// Hostname is the name of the installed system; the machine's own when empty.
	Hostname string `json:"hostname,omitempty"`
	// Parameters are added to those of the profile.
	Parameters map[string]string `json:"parameters,omitempty"`
	// RootDisk overrides the host's and the profile's choice of disk.
	RootDisk DiskHint `json:"rootDisk,omitzero"`
	// KeepDisks are never wiped, neither by a reinstall nor when the machine goes.
	KeepDisks []DiskHint `json:"keepDisks,omitempty"`
	// Clean is how disks are wiped when the machine goes; "" takes the pool's.
	Clean CleanMode `json:"clean,omitempty"`
	// ReleaseAfter says when the machine is gone: once its old OS cannot run any more, or once its host is clean.
	ReleaseAfter ReleaseAfter `json:"releaseAfter,omitempty"`
	Hooks        []Hook       `json:"hooks,omitempty"`
	// Image overrides the profile's image; "" takes that.
	Image string `json:"image,omitempty"`
	// KernelArgs are added to those of the profile.
	KernelArgs []string `json:"kernelArgs,omitempty"`
	// Config is the narrowest layer of its host's configuration while the machine has it, written as package machineconfig
	// reads it.
	Config string `json:"config,omitempty"`
	// BootstrapFrom says that bootstrap data come from somewhere else when the machine asks for them, and from where, in
	// words for people; "" for machines whose configuration says it all.
	BootstrapFrom string `json:"bootstrapFrom,omitempty"`
	// Drain says how the Kubernetes node on it is emptied before its host is fenced.
	Drain Drain `json:"drain,omitzero"`

	Saved

	// OfferedTo is the UID of the Kubernetes cluster whose objects may take the machine over by its claim, because the object
	// that owns it says so.
	OfferedTo string `json:"offeredTo,omitempty" readOnly:"true"`

	// What became of it.
	HostID    HostID       `json:"hostID,omitempty"`
	ClaimID   ClaimID      `json:"claimID,omitempty"`
	Phase     MachinePhase `json:"phase"` // for people: nothing reads it back
	Reason    string       `json:"reason,omitempty"`
	Hint      string       `json:"hint,omitempty"`
	Refs      []Ref        `json:"-"`                  // what Reason and Hint name besides the machine
	AttemptN  int          `json:"attemptN"`           // hosts and installations tried
	Avoid     []HostID     `json:"avoid,omitempty"`    // hosts it failed on
	DeletedAt time.Time    `json:"deletedAt,omitzero"` // when somebody asked for its end
	IsForced  bool         `json:"isForced,omitempty"` // deleted without fencing or wiping: its host is quarantined
	NextAt    time.Time    `json:"nextAt,omitzero"`    // when the engine looks again

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"`
}

// MachinePhase sums up where a machine is.
type MachinePhase string

// The phases of a machine.
const (
	MachinePending      MachinePhase = "pending" // waits for a host
	MachineProvisioning MachinePhase = "provisioning"
	MachineRunning      MachinePhase = "running"
	MachineDeleting     MachinePhase = "deleting"
	MachineFailed       MachinePhase = "failed" // a person has to decide
)

// ReleaseAfter says when a deleted machine is gone.
type ReleaseAfter string

// The moments.
const (
	ReleaseFenced  ReleaseAfter = "fenced" // the default: its host is wiped behind it
	ReleaseCleaned ReleaseAfter = "cleaned"
)

// Hook blocks a step of a machine's life until its owner acknowledges it.
type Hook struct {
	Step  HookStep `json:"step"`
	Owner string   `json:"owner"` // who acknowledges, such as storage-team
	// AckedAt is when it was acknowledged; it blocks while zero.
	AckedAt time.Time `json:"ackedAt,omitzero"`
	// Reason is why it is not acknowledged yet, as its owner says.
	Reason string `json:"reason,omitempty"`
}

// ReasonAtMost bounds the reason of a hook, in bytes.
const ReasonAtMost = 300

// HookStep is a step that a hook can block.
type HookStep string

// The steps, in the order of a machine's life.
const (
	PreClaim   HookStep = "pre-claim"
	PreBoot    HookStep = "pre-boot"
	PostJoin   HookStep = "post-join"
	PreDrain   HookStep = "pre-drain"
	PreFence   HookStep = "pre-fence"
	PreClean   HookStep = "pre-clean"
	PreRelease HookStep = "pre-release"
)

// HookSteps returns all steps that a hook can block.
func HookSteps() []HookStep {
	return []HookStep{PreClaim, PreBoot, PostJoin, PreDrain, PreFence, PreClean, PreRelease}
}

// Drain says how a node is emptied and forgotten. The zero value empties nothing and forgets nothing: machines that are
// no nodes.
type Drain struct {
	// Target is the join target whose cluster the node is in; "" for none.
	Target string `json:"target,omitempty"`
	// Node is its name; the machine's host name when empty.
	Node string `json:"node,omitempty"`
	// IsSkipped leaves the pods where they are; the node is forgotten nevertheless.
	IsSkipped bool `json:"isSkipped,omitempty"`
	// Timeout bounds the eviction, 0 for no limit; IsBlocking waits for a person then instead of going on.
	Timeout    Duration `json:"timeout,omitempty"`
	IsBlocking bool     `json:"isBlocking,omitempty"`
	// GraceSeconds is what each pod is given; 0 or -1 takes the pod's own.
	GraceSeconds       int  `json:"graceSeconds,omitempty"`
	DeleteEmptyDirData bool `json:"deleteEmptyDirData,omitempty"`
	// VolumeTimeout bounds the wait until volumes are detached; 0 does not wait.
	VolumeTimeout Duration `json:"volumeTimeout,omitempty"`
	// ForgetTimeout bounds how long deleting the node object is tried; 0 for no limit.
	ForgetTimeout Duration `json:"forgetTimeout,omitempty"`
}

// DrainState is how far emptying a node is.
type DrainState struct {
	IsDone bool `json:"isDone"`
	// Reason is one of Draining, BlockedByPDB, WaitingForVolumes, WorkloadClusterUnreachable, DrainTimeout.
	Reason    string   `json:"reason,omitempty"`
	Detail    string   `json:"detail,omitempty"`    // one line for people, the same while nothing changes
	BlockedBy []string `json:"blockedBy,omitempty"` // pods or budgets, at most 16
}

// Placement says which hosts a machine may be given, and which are better.
type Placement struct {
	Host          string               `json:"host,omitempty"` // exactly this one; excludes the rest
	Selector      string               `json:"selector,omitempty"`
	Requirements  HardwareRequirements `json:"requirements,omitzero"`
	Preferred     []Preference         `json:"preferred,omitempty"`
	Tolerations   []Toleration         `json:"tolerations,omitempty"`
	FailureDomain string               `json:"failureDomain,omitempty"` // a rack, row or site; see Place.Domain
	// IsDomainPreferred makes the failure domain a wish instead of a condition.
	IsDomainPreferred bool `json:"isDomainPreferred,omitempty"`
	// Reuse says whether the host that an earlier machine of the same ReuseKey had is taken again.
	Reuse    Reuse  `json:"reuse,omitempty"`
	ReuseKey string `json:"reuseKey,omitempty"` // the machine's name when empty
	// NotPools are pools whose hosts it may not have, not even as the host that it names.
	NotPools []string `json:"notPools,omitempty"`
	// OnlyPools are the pools of which its host must be in one; empty asks for none. Unlike Pool they bind a host that is
	// named, too.
	OnlyPools []string `json:"onlyPools,omitempty"`
}

// Reuse says how much a machine wants the host it had.
type Reuse string

// The values of Reuse; "" is any.
const (
	ReuseAny     Reuse = "any"
	ReusePrefer  Reuse = "prefer-same"
	ReuseRequire Reuse = "require-same"
)

// Preference makes hosts better that match a selector.
type Preference struct {
	Weight   int    `json:"weight"` // 1 to 100
	Selector string `json:"selector"`
}

// Taint keeps machines away from a host that do not tolerate it.
type Taint struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
}

// Toleration lets a machine have a host with a taint. Without a value it tolerates every value; without a key, every
// taint.
type Toleration struct {
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

// Tolerates reports whether the toleration covers a taint.
func (t Toleration) Tolerates(x Taint) bool {
	return (t.Key == "" || t.Key == x.Key) && (t.Value == "" || t.Value == x.Value)
}

// HardwareRequirements are what a host must have at least.
type HardwareRequirements struct {
	Arch          Arch   `json:"arch,omitempty"`
	CPUThreads    int    `json:"cpuThreads,omitempty"`
	MemoryBytes   int64  `json:"memoryBytes,omitempty"`
	Disks         int    `json:"disks,omitempty"`
	DiskBytes     int64  `json:"diskBytes,omitempty"` // one disk of at least that size
	IsRotational  *bool  `json:"isRotational,omitempty"`
	PortMbps      int    `json:"portMbps,omitempty"`      // one port of at least that speed
	AcceleratorID string `json:"acceleratorID,omitempty"` // vendor or vendor:device, in hex
	Accelerators  int    `json:"accelerators,omitempty"`
	Firmware      string `json:"firmware,omitempty"` // bios or uefi
	// Expression is CEL over host: host.cpu.threads > 16 && host.labels["zone"] == "a".
	Expression string `json:"expression,omitempty"`
}

// IsZero reports whether nothing is required.
func (r HardwareRequirements) IsZero() bool { return r == HardwareRequirements{} }

// Validate checks requirements by themselves; package hardware compiles the expression.
func (r HardwareRequirements) Validate() error {
	if r.Arch != "" && !slices.Contains([]Arch{X8664, I386, ARM64}, r.Arch) {
		return Errorf(Invalid, "%q is not an architecture", Clean(string(r.Arch), 40)).WithHint("use x86_64, i386 or arm64")
	}
	for what, n := range map[string]int64{
		"cpuThreads": int64(r.CPUThreads), "memoryBytes": r.MemoryBytes, "disks": int64(r.Disks), "diskBytes": r.DiskBytes,
		"portMbps": int64(r.PortMbps), "accelerators": int64(r.Accelerators),
	} {
		if n < 0 {
			return Errorf(Invalid, "requirements: %s is negative", what)
		}
	}
	return CheckText("requirements: expression", r.Expression, 2048)
}

var domainRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/ -]{0,253}$`)

// Validate checks a placement by itself.
func (p *Placement) Validate() error {
	if p.Host != "" && (p.Selector != "" || !p.Requirements.IsZero() || p.FailureDomain != "") {
		return Errorf(Invalid, "a machine that names its host takes that one: leave selector, requirements and failure domain out")
	}
	if _, err := ParseSelector(p.Selector); err != nil {
		return err
	}
	if p.FailureDomain != "" && !domainRE.MatchString(p.FailureDomain) {
		return Errorf(Invalid, "%q is not a failure domain", Clean(p.FailureDomain, 80)).WithHint("name a site, a row or a rack")
	}
	if len(p.NotPools) > 256 {
		return Errorf(Invalid, "at most 256 pools may be left out")
	}
	if len(p.OnlyPools) > 64 {
		return Errorf(Invalid, "at most 64 pools may be named of which a host must be in one")
	}
	for _, name := range slices.Concat(p.NotPools, p.OnlyPools) {
		if err := CheckName("pool", name); err != nil {
			return err
		}
	}
	if len(p.Preferred) > 8 || len(p.Tolerations) > 16 {
		return Errorf(Invalid, "at most 8 preferences and 16 tolerations are allowed")
	}
	for _, w := range p.Preferred {
		if w.Weight < 1 || w.Weight > 100 {
			return Errorf(Invalid, "a preference weighs 1 to 100, not %d", w.Weight)
		}
		if _, err := ParseSelector(w.Selector); err != nil {
			return err
		}
	}
	if !slices.Contains([]Reuse{"", ReuseAny, ReusePrefer, ReuseRequire}, p.Reuse) {
		return Errorf(Invalid, "%q is not a way of reuse", Clean(string(p.Reuse), 40)).WithHint("use any, prefer-same or require-same")
	}
	return p.Requirements.Validate()
}

// Domain returns the failure domain of a host: the narrowest of rack, row and site that is known.
func (p Place) Domain() string {
	for _, d := range []string{p.Rack, p.Row, p.Site} {
		if d != "" {
			return d
		}
	}
	return ""
}

// InDomain reports whether a host is in a failure domain, at whichever level the domain names.
func (p Place) InDomain(domain string) bool {
	return slices.Contains([]string{p.Rack, p.Row, p.Site}, domain) ||
		domain == strings.Trim(p.Site+"/"+p.Row+"/"+p.Rack, "/") || domain == strings.Trim(p.Site+"/"+p.Rack, "/")
}

// Validate checks a machine by itself.
func (m *Machine) Validate() error {
	if err := checkField("name", "machine", m.Name); err != nil {
		return err
	}
	if m.Hostname != "" {
		if err := checkField("hostname", "host", strings.SplitN(m.Hostname, ".", 2)[0]); err != nil {
			return err
		}
	}
	if m.Profile == "" {
		return Errorf(Invalid, "machine %s names no profile", m.Name).WithHint("list them with: slipway profile list")
	}
	if m.Clean != "" && !slices.Contains(CleanModes(), m.Clean) {
		return Errorf(Invalid, "machine %s: %q is not a way to clean", m.Name, Clean(string(m.Clean), 40)).WithHint("use one of %v", CleanModes())
	}
	if !slices.Contains([]ReleaseAfter{"", ReleaseFenced, ReleaseCleaned}, m.ReleaseAfter) {
		return Errorf(Invalid, "machine %s: releaseAfter is fenced or cleaned", m.Name)
	}
	if err := checkHooks("machine "+m.Name, m.Hooks); err != nil {
		return err
	}
	if len(m.KeepDisks) > 32 || len(m.Hooks) > 32 || len(m.Parameters) > 64 {
		return Errorf(Invalid, "machine %s: at most 32 disks to keep, 32 hooks and 64 parameters are allowed", m.Name)
	}
	for _, hint := range append([]DiskHint{m.RootDisk}, m.KeepDisks...) {
		if err := hint.Validate(); err != nil {
			return err
		}
	}
	for field, text := range map[string]string{"owner": m.Owner, "pool": m.Pool, "reuseKey": m.Placement.ReuseKey} {
		if err := CheckText("machine "+m.Name+": "+field, text, 512); err != nil {
			return err
		}
	}
	for k, v := range m.Parameters {
		if !parameterRE.MatchString(k) {
			return Errorf(Invalid, "machine %s: %q is not a parameter name", m.Name, Clean(k, 80)).WithHint("a letter, then letters, digits and _")
		}
		if err := checkArgs("machine "+m.Name, []string{v}); err != nil {
			return err
		}
	}
	if err := m.checkWanted(); err != nil {
		return err
	}
	return m.Placement.Validate()
}

func checkHooks(where string, hooks []Hook) error {
	seen := map[string]bool{}
	for _, h := range hooks {
		if !slices.Contains(HookSteps(), h.Step) {
			return Errorf(Invalid, "%s: %q is not a step that a hook can block", where, Clean(string(h.Step), 40)).WithHint("use one of %v", HookSteps())
		}
		if err := checkField("hooks", "hook", h.Owner); err != nil {
			return err
		}
		if key := string(h.Step) + "/" + h.Owner; seen[key] {
			return Errorf(Invalid, "%s: hook %s stands twice", where, key)
		} else {
			seen[key] = true
		}
	}
	return nil
}

// Claim binds a machine to a host. Both are unique among claims: it is the only lock there is.
type Claim struct {
	ID         ClaimID   `json:"id"`
	MachineUID string    `json:"machineUID"`
	Machine    string    `json:"machine"` // its name
	HostID     HostID    `json:"hostID"`
	CreatedAt  time.Time `json:"createdAt"`
}

// ProviderID is how a Kubernetes node is known to be on that claim: a new claim is a new id.
func (c *Claim) ProviderID(site, host string) string {
	site = cmp.Or(site, "default")
	return fmt.Sprintf("slipway://%s/%s/%s", site, host, c.ID)
}

// Pool is a set of hosts that machines are taken from, with what protects them from too much at once.
type Pool struct {
	Name         string               `json:"name"`
	Selector     string               `json:"selector,omitempty"` // of hosts; "" means all
	Requirements HardwareRequirements `json:"requirements,omitzero"`
	Budget       Budget               `json:"budget,omitzero"`
	Clean        CleanMode            `json:"clean,omitempty"` // quick when ""
	// MinSpare hosts stay unclaimed for replacing failed ones.
	MinSpare int `json:"minSpare,omitempty"`
	// AllowedNamespaces are the labels of the namespaces of attached clusters whose machines may take its hosts; "" for all.
	AllowedNamespaces string `json:"allowedNamespaces,omitempty"`
	// Owner is the object of an attached cluster that it is kept for; "" when a person made it.
	Owner string `json:"owner,omitempty"`
	// BurnInFor is how long new hosts are loaded before they are available; 0 for not at all.
	BurnInFor Duration  `json:"burnInFor,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"`
}

// DefaultPool is the name of the pool that machines are taken from when they name none. While nobody has made it, it
// holds every host.
const DefaultPool = "default"

// Budget bounds what happens in a pool at the same time; 0 means no bound.
type Budget struct {
	Provision       int      `json:"provision,omitempty"`       // installations at the same time
	Destroy         int      `json:"destroy,omitempty"`         // wipes at the same time
	DestroyInterval Duration `json:"destroyInterval,omitempty"` // between the starts of two wipes
}

// Validate checks a pool by itself.
func (p *Pool) Validate() error {
	if err := checkField("name", "pool", p.Name); err != nil {
		return err
	}
	if _, err := ParseSelector(p.Selector); err != nil {
		return err
	}
	if p.Clean != "" && !slices.Contains(CleanModes(), p.Clean) {
		return Errorf(Invalid, "pool %s: %q is not a way to clean", p.Name, Clean(string(p.Clean), 40)).WithHint("use one of %v", CleanModes())
	}
	for field, text := range map[string]string{"allowedNamespaces": p.AllowedNamespaces, "owner": p.Owner} {
		if err := CheckText("pool "+p.Name+": "+field, text, 1024); err != nil {
			return err
		}
	}
	if p.MinSpare < 0 || p.Budget.Provision < 0 || p.Budget.Destroy < 0 || p.Budget.DestroyInterval < 0 || p.BurnInFor < 0 {
		return Errorf(Invalid, "pool %s: a budget cannot be negative", p.Name)
	}
	if time.Duration(p.BurnInFor) > 7*24*time.Hour {
		return Errorf(Invalid, "pool %s: a burn-in of %s is longer than a week", p.Name, p.BurnInFor)
	}
	return p.Requirements.Validate()
}
