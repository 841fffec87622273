package standalone

// What the stand-alone controllers may do; make generate writes kubernetes/manifests/rbac/standalone_role.yaml from it.
// Secrets are not among it: the role slipway-secrets is bound in the namespaces that have machines.
//
// +kubebuilder:rbac:groups=metal.slipway.dev,resources=metalhosts;metalpools;metalmachines;jointargets,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=metal.slipway.dev,resources=metalhosts/status;metalpools/status;metalmachines/status;jointargets/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=metal.slipway.dev,resources=metalhosts/finalizers;metalpools/finalizers;metalmachines/finalizers;jointargets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch;update
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
