package released

import (
	"encoding/json"
	"errors"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/inventory/option"
	"slipway.dev/slipway/inventory/storetest"
)

// then is when everything in the dump was stored.
var then = time.UnixMilli(1795000000123).UTC()

const (
	kernel, system = inventory.Digest("sha256:01aa"), inventory.Digest("sha256:02bb")
	session        = inventory.SessionID("0123456789abcdef0123456789abcdef")
)

var at = netip.MustParseAddr

// do runs steps until one fails.
func do(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// fill stores at least one of every noun, as the program of this tree stores it: a rack with a machine on one host, a
// host that is inspected, and an attached cluster.
func fill(tx inventory.Tx) error {
	return do(
		func() error { return fillSecrets(tx) },
		func() error { return fillNetworks(tx) },
		func() error { return fillImages(tx) },
		func() error { return fillHosts(tx) },
		func() error { return fillHardware(tx) },
		func() error { return fillMachines(tx) },
		func() error { return fillBoots(tx) },
		func() error { return fillHistory(tx) },
		func() error { return fillAccess(tx) },
		func() error { return fillSamples(tx) },
	)
}

// fillSamples stores a sample of each plain noun that has no row yet.
func fillSamples(tx inventory.Tx) error {
	for _, n := range noun.All() {
		rows, err := n.Of(tx).List(inventory.Page{Limit: 1})
		if sample := n.New(); err == nil && len(rows) == 0 {
			err = n.Of(tx).Create(&sample, then)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func fillSecrets(tx inventory.Tx) error {
	return do(
		func() error {
			return tx.Secrets().Create(&inventory.Secret{
				Name: "db", About: "of the database; it's \"quoted\"", Sealed: []byte("\x00sealed\xff"),
				Consumers: inventory.Consumers{Pools: []string{"web"}, Targets: []string{"prod"}},
			}, then)
		},
		func() error {
			return tx.Secrets().Create(&inventory.Secret{Name: "admin", Owner: "c1/default/Secret/admin/1", Sealed: []byte{1, 2}}, then)
		},
		func() error {
			return tx.JoinTargets().Create(&inventory.JoinTarget{
				Name: "prod", Endpoint: "k8s.example:6443", Kubernetes: "1.35.0", Kubeconfig: "admin", PKI: "db",
				TokenFor: inventory.Duration(time.Hour), VIP: at("10.1.0.100"), VIPInterface: "eno1", PodCIDR: "10.244.0.0/16",
				WorkerParallelism: 5, IsInit: true, InitializedAt: then, Consumers: inventory.Consumers{Pools: []string{"web"}},
			}, then)
		},
		func() error {
			c := inventory.Cluster{Name: "mgmt", Kubeconfig: "admin", Modes: []inventory.ClusterMode{inventory.ModeCAPI}, Namespaces: []string{"team"}}
			if err := tx.Clusters().Create(&c, then); err != nil {
				return err
			}
			c.State, c.UID, c.Kubernetes, c.SeenAt = inventory.ClusterAttached, "u-a", "v1.35.0", then
			return tx.NoteCluster(&c)
		},
		func() error {
			return tx.SaveClusterAccess(&inventory.ClusterAccess{
				UID: "u-a", TakesFrom: []string{inventory.FromPeople}, Pools: []string{"web"}, Authority: []string{"ab"},
			}, then)
		},
	)
}

func fillNetworks(tx inventory.Tx) error {
	rack1 := storetest.Subnet("rack1", 1)
	rack1.Options = []option.Option{{Name: "tftp-server-name", Value: "boot.example"}}
	six := inventory.Subnet{
		Name: "six", CIDR: netip.MustParsePrefix("fd00:1::/64"), Interface: "eno1", Mode: inventory.ModeFull, Unknown: inventory.UnknownWait,
		LeaseFor: inventory.Duration(time.Hour), BootLeaseFor: inventory.Duration(time.Minute), Advertise: inventory.AdvertiseManaged,
		IsRouter: true, Ranges: []inventory.Range{{First: at("fd00:1::100"), Last: at("fd00:1::1ff")}},
	}
	lease := storetest.Lease("rack1", 1, 1)
	lease.Port, lease.StartsAt, lease.ExpiresAt = "Ethernet3@leaf-1", then, then.Add(time.Hour)
	lease6 := lease
	lease6.Address, lease6.Subnet, lease6.ClientID, lease6.IAID = at("fd00:1::101"), "six", "00010001aabbccdd", 7
	return do(
		func() error { return tx.Subnets().Create(&rack1, then) },
		func() error { return tx.Subnets().Create(&six, then) },
		func() error {
			return tx.CreateReservation(&inventory.Reservation{
				Address: at("10.1.0.50"), Subnet: "rack1", MAC: storetest.MAC(100), Hostname: "printer",
				Options: []option.Option{{Code: 252, Type: option.Text, Value: "http://wpad/", IsAlways: true}},
			}, then)
		},
		func() error {
			return tx.CreateReservation(&inventory.Reservation{Address: at("fd00:1::50"), Subnet: "six", ClientID: "0003000152540000ff01"}, then)
		},
		func() error {
			return tx.Classes().Create(&inventory.Class{
				Name: "phones", VendorClasses: []string{"acme*"}, MACPrefixes: []string{"00:04:f2"}, Priority: 3,
				Options: []option.Option{{Name: "tftp-server-name", Value: "phones.example"}},
			}, then)
		},
		func() error { return tx.SaveLease(lease) },
		func() error { return tx.SaveLease(lease6) },
	)
}

func fillImages(tx inventory.Tx) error {
	saved := inventory.Saved{SavedBy: "user anna", SavedByAdmin: true}
	return do(
		func() error {
			return tx.SaveArtefact(inventory.Artefact{Digest: kernel, SizeBytes: 8 << 20, Source: "https://files.example/linux", CreatedAt: then})
		},
		func() error {
			return tx.SaveArtefact(inventory.Artefact{Digest: system, SizeBytes: 1 << 30, Source: "debian.qcow2", CreatedAt: then})
		},
		func() error {
			return tx.Images().Create(&inventory.Image{
				Name: "debian-12", OS: "debian", Release: "12", Arch: inventory.X8664, MemoryMiB: 512, IsInstaller: true, KernelArgs: []string{"quiet"},
				Files:   []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: kernel}},
				Configs: []inventory.ImageConfig{{Format: "preseed", Version: "12", InitrdPath: "/preseed.cfg"}}, ConfigArgs: []string{"url=${config}"},
			}, then)
		},
		func() error {
			return tx.Images().Create(&inventory.Image{
				Name: "debian12", OS: "debian", Release: "12", Arch: inventory.X8664, DiskFormat: "qcow2", DiskBytes: 2 << 30, SeedLabel: "CIDATA",
				CPULevel: inventory.CPULevel2, Files: []inventory.ImageArtefact{{Role: inventory.RoleDisk, Name: "debian.qcow2", Digest: system}},
				Configs: []inventory.ImageConfig{{Format: "cloud-init", Version: "24.1"}},
			}, then)
		},
		func() error {
			return tx.Profiles().Create(&inventory.Profile{
				Name: "base", Image: "debian-12", Selector: "rack=r1", Priority: 5, KernelArgs: []string{"a=b"},
				Parameters: map[string]string{"url": "http://x/"}, Saved: saved,
			}, then)
		},
		func() error {
			return tx.Profiles().Create(&inventory.Profile{
				Name: "web", Image: "debian12", Extends: "base", Config: "host: {locale: C.UTF-8}\n", Format: "cloud-init", Accepts: []string{"/storage/lvm"},
				Document: &inventory.Document{Format: inventory.DocCloudConfig, Text: "#cloud-config\npackages: [nginx]\n"}, Saved: saved,
			}, then)
		},
		func() error {
			return tx.Layers().Create(&inventory.Layer{Scope: inventory.ScopeRack, Name: "r1", Config: "host: {timezone: UTC}\n", Saved: saved}, then)
		},
	)
}

func fillHosts(tx inventory.Tx) error {
	busy, free := storetest.Host(1), storetest.Host(2)
	busy.State, busy.StateReason, busy.StateSinceAt, free.StateSinceAt = inventory.Active, "reported up", then, then
	busy.Profile, busy.ProfileRevision, busy.Port, busy.DiskBoot = "web", 1, "Ethernet3@leaf-1", inventory.DiskExit
	busy.IsProtected, busy.IsDirty, busy.IsRetained = true, true, true
	busy.Taints = []inventory.Taint{{Key: "gpu", Value: "a100"}}
	busy.RootDisk, busy.KeepDisks = inventory.DiskHint{Serial: "S1"}, []inventory.DiskHint{{WWN: "0x5000"}}
	busy.LastSeenAt, busy.IdentifiedAt = then, then
	free.ReuseKey, free.FreedAt, free.FailureN = "db-1", then, 1
	return do(
		func() error { return tx.CreateHost(&busy, then) },
		func() error { return tx.CreateHost(&free, then) },
		func() error {
			return tx.SaveBMC(&inventory.BMC{
				HostID: busy.ID, Driver: inventory.Redfish, Address: "https://10.0.9.14", Username: "slipway", Sealed: []byte{0, 9}, System: "1",
				Others: []inventory.OtherPassword{{Sealed: []byte{7}, At: then, IsNext: true}}, Fingerprint: "3f9a", MAC: storetest.MAC(300),
				Options: map[string]string{"boot": "http"}, Power: inventory.PowerOn, PowerAt: then, IsReachable: true, Vendor: "Dell",
				Capabilities: []string{"power", "boot"}, CheckedAt: then, LastCheck: &inventory.LastCheck{At: then, By: "user anna", IsGood: true, Detail: "ok"},
			}, then)
		},
		func() error {
			return tx.Racks().Create(&inventory.Rack{
				Site: "fra1", Row: "a", Name: "r1", Height: 42, Numbering: inventory.FromBottom, Notes: "cold aisle",
				Cables: []inventory.Cable{{Unit: 2, Port: "eno1", Switch: "leaf-1", To: "Ethernet3"}},
			}, then)
		},
	)
}

func fillHardware(tx inventory.Tx) error {
	i := storetest.Inspection(2)
	i.At, i.Hardware.CollectedAt = then, then
	return do(
		func() error { return tx.SaveInspection(&i) },
		func() error {
			return tx.SaveReport(inventory.Report{ID: "01OP/wipe", HostID: i.HostID, Kind: inventory.ReportWipe, Body: json.RawMessage(`[{"mode":"full"}]`), CreatedAt: then})
		},
		func() error {
			return tx.Goldens().Create(&inventory.Golden{
				Name: "r650", Selector: "product=~R650", Requirements: inventory.HardwareRequirements{CPUThreads: 32, Firmware: "uefi"},
				Firmware: map[string]string{"bios": "1.2.3"}, DiskN: 2, PortN: 2, IsStrict: true,
			}, then)
		},
	)
}

func fillMachines(tx inventory.Tx) error {
	m := storetest.Machine(1)
	m.Profile, m.Pool, m.Owner, m.OfferedTo = "web", "web", "u-a/default/SlipwayMachine/web/1234", "u-b"
	m.Phase, m.Hostname, m.Image, m.KernelArgs = inventory.MachineRunning, "web-1", "debian12", []string{"quiet"}
	m.Placement = inventory.Placement{Selector: "rack=r1", FailureDomain: "r1", Reuse: inventory.ReusePrefer}
	m.Config, m.BootstrapFrom, m.Clean = "host: {keymap: de}\n", "mgmt/default/web-data", inventory.CleanFull
	m.Hooks = []inventory.Hook{{Step: inventory.PreDrain, Owner: "storage", AckedAt: then}}
	m.Drain = inventory.Drain{Target: "prod", Node: "web-1", Timeout: inventory.Duration(5 * time.Minute), IsBlocking: true}
	m.Saved, m.NextAt, m.AttemptN = inventory.Saved{SavedBy: "token ci"}, then.Add(time.Minute), 1
	host := storetest.Host(1).ID
	o := storetest.Operation(1)
	o.Machine, o.MachineUID, o.ClaimID, o.Pool, o.Step, o.Task, o.TaskN = m.Name, m.UID, "01CLAIM00001", "web", inventory.StepWrite, "write", 2
	o.Progress, o.Params = inventory.Progress{Detail: "sda", Bytes: 1 << 20, Total: 1 << 30}, json.RawMessage(`{"profile":"web"}`)
	o.By, o.StartedAt, o.GrantedAt, o.StepAt, o.NextAt = "token ci", then, then, then, then.Add(time.Second)
	return do(
		func() error {
			return tx.Pools().Create(&inventory.Pool{
				Name: "web", Selector: "role=worker", Requirements: inventory.HardwareRequirements{MemoryBytes: 1 << 34}, Clean: inventory.CleanQuick,
				Budget: inventory.Budget{Provision: 5, Destroy: 1}, MinSpare: 1, AllowedNamespaces: "team=web", BurnInFor: inventory.Duration(time.Hour),
			}, then)
		},
		func() error { return tx.CreateMachine(&m, then) },
		func() error {
			return tx.CreateClaim(&inventory.Claim{ID: o.ClaimID, MachineUID: m.UID, HostID: host}, then)
		},
		func() error {
			return tx.CreateAllocation(&inventory.Allocation{Address: at("10.1.201.9"), Subnet: "rack1", Holder: inventory.Holder{MachineUID: m.UID}, IsFixed: true}, then)
		},
		func() error {
			return tx.SaveHoldings(inventory.Holder{MachineUID: m.UID}, []inventory.Holding{
				{Kind: inventory.HoldsName, Value: "web-1", Domain: "rack.example", Path: "/host/hostname", Source: "machine:1"},
			})
		},
		func() error { return tx.CreateOperation(&o, then) },
	)
}

func fillBoots(tx inventory.Tx) error {
	host := storetest.Host(1).ID
	return do(
		func() error {
			return tx.SaveRendering(inventory.Rendering{
				Digest: "sha256:03cc", HostID: host, Profile: "web", Revision: 1, Image: "debian12", Format: "cloud-init", CreatedAt: then,
				Documents: []inventory.RenderedDocument{{Name: "user-data", ContentType: "text/cloud-config", Text: "#cloud-config\n", IsSecret: true}},
				Args:      []string{"ds=nocloud"}, Uses: []inventory.Use{{Ref: "secret://db", Noun: "profile", Name: "web", IsAdmins: true}},
			})
		},
		func() error {
			return tx.SaveSession(inventory.BootSession{
				ID: session, HostID: host, MAC: storetest.MAC(2), Address: at("10.1.1.1"), Arch: inventory.X8664, Firmware: inventory.UEFI, Subnet: "rack1",
				Port: "Ethernet3@leaf-1", Proof: inventory.ProofPower, Boot: "image", Reason: "armed", Profile: "web", Image: "debian12",
				Config: "sha256:03cc", Operation: storetest.Operation(1).ID, Step: inventory.EventConfigSent, StartedAt: then, LastAt: then,
			})
		},
		func() error {
			return tx.SaveDelivery(inventory.Delivery{SessionID: session, Document: "user-data", Source: at("10.1.1.1"), FetchN: 1, FirstAt: then, LastAt: then})
		},
		func() error {
			return tx.SaveJoinToken(inventory.JoinToken{
				ID: "abcdef", Target: "prod", HostID: host, SessionID: session, NodeName: "web-1", Sealed: []byte{5},
				State: inventory.TokenMinted, CreatedAt: then, ExpiresAt: then.Add(time.Hour),
			})
		},
		func() error {
			return tx.SaveLock(inventory.Lock{Name: "init/prod", HostID: host, SessionID: session, SinceAt: then})
		},
		func() error {
			return tx.SaveSiteKey(inventory.SiteKey{Name: "boot", Public: "certificate", Sealed: []byte("\x00sealed\xff"), SinceAt: then})
		},
		func() error {
			return tx.SaveInstance(inventory.Instance{
				ID: "01INSTANCE", Name: "a", Run: "01RUN", Addresses: []string{"10.1.0.1"}, Links: []string{"10.1.0.1:8069"}, Version: "0.1.0", HeartbeatN: 4, IsDrained: true, StartedAt: then, SeenAt: then,
			})
		},
		func() error {
			return tx.SaveDuty(inventory.Duty{Name: inventory.DutyEngine, Holder: "01INSTANCE", Epoch: 3, SinceAt: then, Reason: "instance b stopped"})
		},
	)
}

func fillHistory(tx inventory.Tx) error {
	host := storetest.Host(1).ID
	e := inventory.Event{At: then, Kind: inventory.EventDHCPAck, HostID: host, SessionID: session, MAC: storetest.MAC(2), Detail: "took 10.1.1.1", Data: map[string]any{"address": "10.1.1.1"}}
	a := inventory.Audit{
		At: then, Actor: "user anna", Role: "admin", Via: "login", Source: "10.0.0.7", RequestID: "00ff", Operation: "patch-host", Noun: "host",
		Name: "host-00001", HostID: host, Change: inventory.AuditUpdate, Status: 200, Version: 2, Before: json.RawMessage(`{"a":1}`), After: json.RawMessage(`{"a":2}`),
	}
	refused := inventory.Audit{At: then, Actor: "token ci", Via: "token", Operation: "delete-host", Noun: "host", Status: 403, Detail: "needs the role operator"}
	i := inventory.Issue{Key: "wrong-port/1", Type: inventory.IssueWrongPort, Severity: inventory.SeverityWarning, HostIDs: []inventory.HostID{host}, Subnet: "rack1", Cause: "it is on Ethernet4", Hint: "look at the cable"}
	return do(
		func() error { return tx.AddEvent(&e) },
		func() error { return tx.AddAudit(&a) },
		func() error { return tx.AddAudit(&refused) },
		func() error { _, err := tx.OpenIssue(&i, then); return err },
	)
}

func fillAccess(tx inventory.Tx) error {
	anna := inventory.User{
		Name: "anna", DisplayName: "Anna", PasswordHash: "$argon2id$v=19$m=1,t=1,p=1$AA$AA", Issuer: "https://sso.example", Subject: "17",
		Grants: inventory.Grants{{Role: inventory.Admin}, {Role: inventory.Operator, Pool: "web"}}, NeedsSecondFactor: true,
	}
	return errors.Join(
		tx.Users().Create(&anna, then),
		tx.SaveFactors("anna", []byte{3, 4}),
		tx.NoteLogin("anna", then),
		tx.CreateToken(&inventory.Token{Name: "ci", Hash: "c1", User: "anna", Grants: inventory.Grants{{Role: inventory.Operator, Pool: "web"}}, ExpiresAt: then.Add(time.Hour)}, then),
		tx.CreateToken(&inventory.Token{Name: "mgmt", Hash: "c2", Grants: inventory.Grants{}, Cluster: "u-a", Namespaces: []string{"team"}}, then),
		tx.CreateLogin(&inventory.Login{ID: "1", Hash: "d1", User: "anna", Source: "10.0.0.7", Agent: "Firefox", ExpiresAt: then.Add(time.Hour)}, then),
		tx.AcceptRules().Create(&inventory.AcceptRule{Name: "dell", Selector: "manufacturer=~Dell.*"}, then),
		tx.CreateView(&inventory.View{Name: "Rack 1", Owner: "anna", Query: "rack=r1", Columns: []string{"name", "state"}, Group: "state", Sort: "-name"}, then),
	)
}
