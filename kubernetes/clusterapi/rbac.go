package clusterapi

// What the controllers for Cluster API may do in addition to those of package standalone; make generate writes
// kubernetes/manifests/rbac/capi_role.yaml from it.
//
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=slipwayclusters;slipwayclustertemplates;slipwaymachines;slipwaymachinetemplates;slipwayremediations;slipwayremediationtemplates,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=slipwayclusters/status;slipwaymachines/status;slipwaymachinetemplates/status;slipwayremediations/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=slipwayclusters/finalizers;slipwaymachines/finalizers;slipwayremediations/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines;machinesets;machinedeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters/status;machines/status,verbs=get
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/status,verbs=patch;update
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes,verbs=get;list;watch
