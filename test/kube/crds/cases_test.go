package crds_test

import "strings"

// cases are accepted when want is "". An update (then) is merged over the stored object; null removes. Each breaks one
// rule: when the schema refuses an object, rules are not looked at.
var cases = []struct {
	name, kind, object string
	spec, then, want   string
}{
	{name: "a host of which nothing is said", kind: "MetalHost", spec: "{}"},
	{name: "a host of which all is said", kind: "MetalHost", spec: `
inventoryID: 0192f0c1-0000-7000-8000-000000000001
bootMACs: ["52:54:00:00:00:01", "52:54:00:00:00:02"]
accepted: true
cordoned: false
protected: true
maintenance: {reason: "new memory", until: "2026-12-01T00:00:00Z"}
failureDomain: hall-1/row-2/rack-3
taints: [{key: gpu, value: "yes"}]
rootDevice: {deviceName: /dev/disk/by-path/x, serial: A, wwn: B, minSize: 100Gi, rotational: false}
power: {driver: Redfish, address: https://10.0.0.1, credentialsRef: {name: bmc, namespace: slipway-system}, insecureSkipVerify: true}
reclaimPolicy: Retain`},
	{name: "a host's inventory id is set once", kind: "MetalHost", spec: "{}", then: "{inventoryID: a}"},
	{name: "a host's inventory id does not change", kind: "MetalHost", spec: "{inventoryID: a}", then: "{inventoryID: b}", want: "inventoryID cannot be changed"},
	{name: "a host's inventory id is not removed", kind: "MetalHost", spec: "{inventoryID: a}", then: "{inventoryID: null}", want: "inventoryID cannot be changed"},
	{name: "a host keeps its inventory id while the rest changes", kind: "MetalHost", spec: "{inventoryID: a}", then: "{cordoned: true}"},
	{name: "a MAC in capitals", kind: "MetalHost", spec: "{bootMACs: ['52:54:00:AA:00:01']}", want: "bootMACs"},
	{name: "a MAC twice", kind: "MetalHost", spec: "{bootMACs: ['52:54:00:00:00:01', '52:54:00:00:00:01']}", want: "Duplicate"},
	{name: "maintenance without a reason", kind: "MetalHost", spec: "{maintenance: {until: '2026-12-01T00:00:00Z'}}", want: "maintenance.reason"},
	{name: "Redfish without an address", kind: "MetalHost", spec: "{power: {driver: Redfish}}", want: "needs an address"},
	{name: "a webhook without an address", kind: "MetalHost", spec: "{power: {driver: Webhook, options: {on.path: /on}}}", want: "needs an address"},
	{name: "a webhook without its calls", kind: "MetalHost", spec: "{power: {driver: Webhook, address: 'http://10.0.0.2:8991'}}", want: "options that say which calls switch the host"},
	{name: "a webhook whose options name no call", kind: "MetalHost", spec: "{power: {driver: Webhook, address: 'http://10.0.0.2:8991', options: {timeout: 5s}}}", want: "options that say which calls switch the host"},
	{name: "a webhook with its calls", kind: "MetalHost", spec: "{power: {driver: Webhook, address: 'http://10.0.0.2:8991', options: {on.path: /on, off.path: /off}, credentialsRef: {name: pdu, namespace: a}, fingerprint: '" + strings.Repeat("ab", 32) + "'}}"},
	{name: "a fingerprint that is none", kind: "MetalHost", spec: "{power: {driver: Redfish, address: 'https://10.0.0.2', fingerprint: ab}}", want: "fingerprint"},
	{name: "IPMI has no certificate", kind: "MetalHost", spec: "{power: {driver: IPMI, address: 10.0.0.2, insecureSkipVerify: true}}", want: "only the drivers Redfish and Webhook check a certificate"},
	{name: "IPMI with an option", kind: "MetalHost", spec: "{power: {driver: IPMI, address: 10.0.0.2, options: {cipher: '3'}}}"},
	{name: "a virtual machine has no account", kind: "MetalHost", spec: "{power: {driver: Libvirt, address: 'qemu:///system', credentialsRef: {name: a, namespace: b}}}", want: "have no account and no options"},
	{name: "power by hand has no address", kind: "MetalHost", spec: "{power: {driver: Manual, address: 10.0.0.1}}", want: "switch by hand"},
	{name: "WakeOnLAN without an address", kind: "MetalHost", spec: "{power: {driver: WakeOnLAN}}"},
	{name: "power by hand", kind: "MetalHost", spec: "{power: {driver: Manual}}"},
	{name: "a driver that nobody knows", kind: "MetalHost", spec: "{power: {driver: Telepathy}}", want: "Telepathy"},

	{name: "a pool of all hosts", kind: "MetalPool", spec: "{}"},
	{name: "a pool with all its rules", kind: "MetalPool", spec: `
selector: {matchLabels: {metal.slipway.dev/site: ams}, matchExpressions: [{key: gpu, operator: Exists}]}
requirements: {architecture: arm64, minCPUThreads: 8, minMemory: 64Gi, minDisks: 2, minDiskSize: 1Ti, diskRotational: false, minNICSpeedMbps: 10000, acceleratorVendor: 10de, minAccelerators: 1, expression: "host.cpu.threads > 16"}
allowedNamespaces: {matchLabels: {team: a}}
budgets: {maxConcurrentProvisioning: 10, maxConcurrentDestroy: 1, destroyIntervalSeconds: 0}
cleanPolicy: Secure
minSpare: 0`},
	{name: "a pool of processors that Slipway does not boot", kind: "MetalPool", spec: "{requirements: {architecture: s390x}}", want: "s390x"},
	{name: "a budget of nothing", kind: "MetalPool", spec: "{budgets: {maxConcurrentDestroy: 0}}", want: "maxConcurrentDestroy"},
	{name: "fewer than no spare hosts", kind: "MetalPool", spec: "{minSpare: -1}", want: "minSpare"},

	{name: "a machine with nothing but a profile", kind: "MetalMachine", spec: "{}"},
	{name: "a machine of which all is said", kind: "MetalMachine", spec: `
placement:
  pool: a
  selector: {matchLabels: {rack: r1}}
  requirements: {minMemory: 8Gi}
  preferred: [{weight: 100, selector: {matchLabels: {fast: "yes"}}}]
  tolerations: [{key: gpu, operator: Exists}, {key: a, operator: Equal, value: b}]
  failureDomainPolicy: Preferred
  reuse: RequireSame
failureDomain: rack-1
os: {profile: debian12, version: debian-12.7, variables: {tz: UTC}, kernelArgs: [console=ttyS0]}
hostname: web.example.org
roles: [ControlPlane, Node]
versions: {kubelet: v1.36.3, controlPlane: v1.36.3, containerRuntime: {name: containerd}}
bootstrap: {join: {targetRef: {name: lab}, kubeletExtraArgs: [{name: v, value: "4"}], preCommands: [a], postCommands: [b]}}
node: {labels: {a: b}, annotations: {c: d}, taints: [{key: e, effect: NoSchedule}]}
files: [{path: /etc/motd, content: hello, permissions: "0644", owner: "root:root", encoding: base64, template: true, append: false}, {path: /etc/key, contentFrom: {name: s, key: k}}, {path: /etc/empty, content: ""}]
users: [{name: ops, sshAuthorizedKeys: [ssh-ed25519 A], passwordHashFrom: {name: s, key: k}, sudo: ALL, shell: /bin/sh, groups: [adm]}]
deletion: {drain: {enabled: true, timeoutSeconds: 0, onTimeout: Block, gracePeriodSeconds: -1, deleteEmptyDirData: true, volumeDetachTimeoutSeconds: 0}, clean: Full, releaseAfter: Cleaned, nodeDeletionTimeoutSeconds: 0}
updatePolicy: Reprovision
providerConfig: {value: {apiVersion: metal.slipway.dev/v1alpha1, kind: SlipwayProviderConfig, anything: {goes: here}}}`},
	{name: "a machine whose name is as long as may be", kind: "MetalMachine", object: strings.Repeat("m", 63), spec: "{}"},
	{name: "a machine whose name is too long for a host", kind: "MetalMachine", object: strings.Repeat("m", 64), spec: "{}", want: "at most 63 characters"},
	{name: "no profile", kind: "MetalMachine", spec: "{os: {profile: ''}}", want: "spec.os.profile"},
	{name: "a profile whose name is none", kind: "MetalMachine", spec: "{os: {profile: Debian_12}}", want: "spec.os.profile"},
	{name: "a profile whose name has two lines", kind: "MetalMachine", spec: "{os: {profile: \"debian\\n12\"}}", want: "spec.os.profile"},
	{name: "a pinned host", kind: "MetalMachine", spec: "{placement: {hostName: r1u1}}"},
	{name: "a pinned host of a pool", kind: "MetalMachine", spec: "{placement: {hostName: r1u1, pool: a}}", want: "hostName takes exactly that host"},
	{name: "a pinned host of a selector", kind: "MetalMachine", spec: "{placement: {hostName: r1u1, selector: {matchLabels: {a: b}}}}", want: "hostName takes exactly that host"},
	{name: "a pinned host with requirements", kind: "MetalMachine", spec: "{placement: {hostName: r1u1, requirements: {minMemory: 1Gi}}}", want: "hostName takes exactly that host"},
	{name: "a pinned host in a failure domain", kind: "MetalMachine", spec: "{failureDomain: r1, placement: {hostName: r1u1}}", want: "leave failureDomain out"},
	{name: "a pinned host that is preferred", kind: "MetalMachine", spec: "{placement: {hostName: r1u1, reuse: PreferSame}}", want: "leave preferred and reuse out"},
	{name: "a toleration without a value", kind: "MetalMachine", spec: "{placement: {tolerations: [{key: gpu}]}}", want: "operator Equal needs a key and a value"},
	{name: "a toleration of existence with a value", kind: "MetalMachine", spec: "{placement: {tolerations: [{key: gpu, operator: Exists, value: a}]}}", want: "operator Exists has no value"},
	{name: "a weight out of range", kind: "MetalMachine", spec: "{placement: {preferred: [{weight: 101, selector: {}}]}}", want: "weight"},
	{name: "a dedicated etcd", kind: "MetalMachine", spec: "{roles: [Etcd], bootstrap: {join: {targetRef: {name: lab}}}}", want: "Etcd"},
	{name: "a control plane of no cluster", kind: "MetalMachine", spec: "{roles: [ControlPlane]}", want: "roles are those of a machine that joins a cluster"},
	{name: "a control plane by somebody else's data", kind: "MetalMachine", spec: "{roles: [ControlPlane], bootstrap: {dataSecretName: s}}", want: "roles are those of a machine that joins a cluster"},
	{name: "no roles of a plain server", kind: "MetalMachine", spec: "{roles: []}"},
	{name: "a plain server has no version of Kubernetes", kind: "MetalMachine", spec: "{versions: {kubelet: v1.36.3}}", want: "versions are those of a machine that joins a cluster"},
	{name: "a plain server has no node", kind: "MetalMachine", spec: "{node: {labels: {a: b}}}", want: "node is put on the node of a machine that joins a cluster"},
	{name: "bootstrap without data", kind: "MetalMachine", spec: "{bootstrap: {}}", want: "dataSecretName or join"},
	{name: "an update in place", kind: "MetalMachine", spec: "{updatePolicy: InPlace}", want: "InPlace"},
	{name: "a runtime that nobody knows", kind: "MetalMachine", spec: "{bootstrap: {join: {targetRef: {name: lab}}}, versions: {containerRuntime: {name: docker}}}", want: "docker"},
	{name: "the version of a runtime, which is the profile's", kind: "MetalMachine", spec: "{bootstrap: {join: {targetRef: {name: lab}}}, versions: {containerRuntime: {name: containerd, version: '2.1'}}}", want: "unknown field"},
	{name: "a role twice", kind: "MetalMachine", spec: "{roles: [Node, Node]}", want: "Duplicate"},
	{name: "a role that nobody knows", kind: "MetalMachine", spec: "{roles: [Boss]}", want: "Boss"},
	{name: "a version that is none", kind: "MetalMachine", spec: "{bootstrap: {join: {targetRef: {name: lab}}}, versions: {kubelet: latest}}", want: "versions.kubelet"},
	{name: "bootstrap data of a secret", kind: "MetalMachine", spec: "{bootstrap: {dataSecretName: s}}"},
	{name: "two sources of bootstrap data", kind: "MetalMachine", spec: "{bootstrap: {dataSecretName: s, join: {targetRef: {name: lab}}}}", want: "dataSecretName and join exclude each other"},
	{name: "a kubelet flag twice", kind: "MetalMachine", spec: "{bootstrap: {join: {targetRef: {name: lab}, kubeletExtraArgs: [{name: v}, {name: v}]}}}", want: "Duplicate"},
	{name: "a file without content", kind: "MetalMachine", spec: "{files: [{path: /a}]}", want: "exactly one of content and contentFrom"},
	{name: "a file with two contents", kind: "MetalMachine", spec: "{files: [{path: /a, content: x, contentFrom: {name: s, key: k}}]}", want: "exactly one of content and contentFrom"},
	{name: "a template in a Secret", kind: "MetalMachine", spec: "{files: [{path: /a, template: true, contentFrom: {name: s, key: k}}]}", want: "is no template"},
	{name: "packed bytes as text", kind: "MetalMachine", spec: "{files: [{path: /a, encoding: gzip, content: x}]}", want: "gzip is no text"},
	{name: "packed bytes in a Secret", kind: "MetalMachine", spec: "{files: [{path: /a, encoding: gzip, contentFrom: {name: s, key: k}}]}"},
	{name: "a file that is relative", kind: "MetalMachine", spec: "{files: [{path: a, content: x}]}", want: "path"},
	{name: "a file twice", kind: "MetalMachine", spec: "{files: [{path: /a, content: x}, {path: /a, content: y}]}", want: "Duplicate"},
	{name: "permissions that are none", kind: "MetalMachine", spec: "{files: [{path: /a, content: x, permissions: rw}]}", want: "permissions"},
	{name: "a file as big as may be", kind: "MetalMachine", spec: "{files: [{path: /a, content: '" + strings.Repeat("x", 262144) + "'}]}"},
	{name: "a file that is too big", kind: "MetalMachine", spec: "{files: [{path: /a, content: '" + strings.Repeat("x", 262145) + "'}]}", want: "content"},
	{name: "a user whose name is none", kind: "MetalMachine", spec: "{users: [{name: Root}]}", want: "name"},
	{name: "a node's taint without effect", kind: "MetalMachine", spec: "{bootstrap: {join: {targetRef: {name: lab}}}, node: {taints: [{key: a}]}}", want: "effect"},
	{name: "provider config from a ConfigMap", kind: "MetalMachine", spec: "{providerConfig: {valueFrom: {kind: ConfigMap, name: c}}}", want: "unknown field"},
	{name: "a grace period below -1", kind: "MetalMachine", spec: "{deletion: {drain: {gracePeriodSeconds: -2}}}", want: "gracePeriodSeconds"},

	{name: "a claim is noted", kind: "MetalMachine", spec: "{}", then: "{claimID: A, providerID: 'slipway://s/h/A'}"},
	{name: "a claim and its provider id change together", kind: "MetalMachine", spec: "{claimID: A, providerID: 'slipway://s/h/A'}", then: "{claimID: B, providerID: 'slipway://s/i/B'}"},
	{name: "a claim changes alone", kind: "MetalMachine", spec: "{claimID: A, providerID: 'slipway://s/h/A'}", then: "{claimID: B}", want: "claimID is Slipway's"},
	{name: "a provider id changes alone", kind: "MetalMachine", spec: "{claimID: A, providerID: 'slipway://s/h/A'}", then: "{providerID: 'slipway://s/h/B'}", want: "providerID is Slipway's"},
	{name: "a claim is removed", kind: "MetalMachine", spec: "{claimID: A, providerID: 'slipway://s/h/A'}", then: "{claimID: null}", want: "claimID is Slipway's"},
	{name: "a claim without a provider id is removed", kind: "MetalMachine", spec: "{claimID: A}", then: "{claimID: null}", want: "claimID is Slipway's"},
	{name: "a claim without a provider id changes", kind: "MetalMachine", spec: "{claimID: A}", then: "{claimID: B}", want: "claimID is Slipway's"},
	{name: "a provider id is removed", kind: "MetalMachine", spec: "{claimID: A, providerID: 'slipway://s/h/A'}", then: "{providerID: null}", want: "providerID is Slipway's"},
	{name: "placement changes before the claim", kind: "MetalMachine", spec: "{placement: {pool: a}}", then: "{placement: {pool: b}}"},
	{name: "placement changes after the claim", kind: "MetalMachine", spec: "{claimID: A, placement: {pool: a}}", then: "{placement: {pool: b}}", want: "placement cannot be changed once a host is claimed"},
	{name: "placement is removed after the claim", kind: "MetalMachine", spec: "{claimID: A, placement: {pool: a}}", then: "{placement: null}", want: "placement cannot be changed once a host is claimed"},
	{name: "placement is added after the claim, which the controller reports", kind: "MetalMachine", spec: "{claimID: A}", then: "{placement: {pool: a}}"},
	{name: "the profile changes after the claim", kind: "MetalMachine", spec: "{claimID: A, placement: {pool: a}}", then: "{os: {profile: other}}"},

	{name: "a target with a kubeconfig", kind: "JoinTarget", spec: "{init: null, kubeconfigSecretRef: {name: k, key: value}}"},
	{name: "a target with a token", kind: "JoinTarget", spec: "{init: null, staticToken: {tokenSecretRef: {name: t, key: token}, caCertHashes: ['sha256:" + strings.Repeat("a", 64) + "']}}"},
	{name: "a target that is made, with all that is said of it", kind: "JoinTarget", spec: "{kubernetesVersion: v1.36.3, workerJoinParallelism: 1, tokenTTLSeconds: 60, clusterConfiguration: {networking: {podSubnet: 10.1.0.0/16}}}"},
	{name: "a target that nobody can join", kind: "JoinTarget", spec: "{init: null}", want: "say how machines get in"},
	{name: "a target that is not made and has no key", kind: "JoinTarget", spec: "{init: false}", want: "say how machines get in"},
	{name: "an endpoint without a port", kind: "JoinTarget", spec: "{controlPlaneEndpoint: 10.0.0.1}", want: "controlPlaneEndpoint"},
	{name: "a token without the hash of an authority", kind: "JoinTarget", spec: "{staticToken: {tokenSecretRef: {name: t, key: token}, caCertHashes: []}}", want: "caCertHashes"},
	{name: "a hash that is none", kind: "JoinTarget", spec: "{staticToken: {tokenSecretRef: {name: t, key: token}, caCertHashes: ['sha256:abc']}}", want: "caCertHashes"},
	{name: "no worker may join", kind: "JoinTarget", spec: "{workerJoinParallelism: 0}", want: "workerJoinParallelism"},

	{name: "a cluster whose endpoint comes later", kind: "SlipwayCluster", spec: "{}"},
	{name: "a cluster of which all is said", kind: "SlipwayCluster", spec: "{controlPlaneEndpoint: {host: 10.0.0.1, port: 6443}, endpointMode: StaticPodVIP, failureDomains: [a, b], controlPlaneFailureDomains: [a]}"},
	{name: "an endpoint that says nothing", kind: "SlipwayCluster", spec: "{controlPlaneEndpoint: {}}", want: "controlPlaneEndpoint"},
	{name: "a port out of range", kind: "SlipwayCluster", spec: "{controlPlaneEndpoint: {host: a, port: 65536}}", want: "port"},
	{name: "a failure domain twice", kind: "SlipwayCluster", spec: "{failureDomains: [a, a]}", want: "Duplicate"},
	{name: "a template of clusters", kind: "SlipwayClusterTemplate", spec: "{template: {metadata: {labels: {a: b}}, spec: {endpointMode: Appliance}}}"},

	{name: "a machine of Cluster API of which all is said", kind: "SlipwayMachine", spec: "{placement: {reuse: PreferSame}, extraConfig: [{format: butane, secretRef: {name: s}}], clean: None, releaseAfter: Cleaned}"},
	{name: "a provider id of ours", kind: "SlipwayMachine", spec: "{claimID: A, providerID: 'slipway://s/h/A'}"},
	{name: "a provider id of someone else", kind: "SlipwayMachine", spec: "{providerID: 'aws:///x'}", want: "providerID begins with slipway://"},
	{name: "a provider id that is empty", kind: "SlipwayMachine", spec: "{providerID: ''}", want: "providerID"},
	{name: "a SlipwayMachine's claim and provider id change together", kind: "SlipwayMachine", spec: "{claimID: A, providerID: 'slipway://s/h/A'}", then: "{claimID: B, providerID: 'slipway://s/i/B'}"},
	{name: "a SlipwayMachine's claim changes alone", kind: "SlipwayMachine", spec: "{claimID: A, providerID: 'slipway://s/h/A'}", then: "{claimID: B}", want: "claimID is Slipway's"},
	{name: "a SlipwayMachine's claim is removed", kind: "SlipwayMachine", spec: "{claimID: A, providerID: 'slipway://s/h/A'}", then: "{claimID: null}", want: "claimID is Slipway's"},
	{name: "a SlipwayMachine's provider id changes alone", kind: "SlipwayMachine", spec: "{claimID: A, providerID: 'slipway://s/h/A'}", then: "{providerID: 'slipway://s/h/B'}", want: "providerID is Slipway's"},
	{name: "a SlipwayMachine's provider id is removed", kind: "SlipwayMachine", spec: "{claimID: A, providerID: 'slipway://s/h/A'}", then: "{providerID: null}", want: "providerID is Slipway's"},
	{name: "a SlipwayMachine's placement changes after the claim", kind: "SlipwayMachine", spec: "{claimID: A, placement: {pool: a}}", then: "{placement: {pool: b}}", want: "placement cannot be changed"},
	{name: "a SlipwayMachine's pinned host of a pool", kind: "SlipwayMachine", spec: "{placement: {hostName: a, pool: b}}", want: "hostName takes exactly that host"},
	{name: "a format that nobody knows", kind: "SlipwayMachine", spec: "{extraConfig: [{format: toml, secretRef: {name: s}}]}", want: "toml"},
	{name: "a template of machines with a provider id", kind: "SlipwayMachineTemplate", spec: "{template: {spec: {placement: {hostName: a, pool: b}}}}", want: "hostName takes exactly that host"},

	{name: "a remediation of which all is said", kind: "SlipwayRemediation", spec: "{steps: [PowerCycle, Reprovision, Replace], retryLimit: 1, timeoutSeconds: 60, outOfServiceTaint: true}"},
	{name: "a remediation without a step", kind: "SlipwayRemediation", spec: "{steps: []}", want: "steps"},
	{name: "a step that nobody knows", kind: "SlipwayRemediation", spec: "{steps: [Pray]}", want: "Pray"},
	{name: "a remediation that is too hasty", kind: "SlipwayRemediation", spec: "{timeoutSeconds: 59}", want: "timeoutSeconds"},
	{name: "a template of remediations without a step", kind: "SlipwayRemediationTemplate", spec: "{template: {spec: {steps: []}}}", want: "steps"},
}
