// Package backend holds the back ends of package contract: what controllers and the command line get as the Appliance.
// Local answers with the engine and the store of this process. Remote and ClusterRemote answer over the REST API. Scoped
// stands before another one, and limits the controllers of one cluster to what is their own, whatever the objects in the
// cluster claim.
//
// A cluster sees, changes and ends only the machines, pools, join targets and secrets of its own, and the hosts that it may
// use. Scoped decides by the owner that is stored with each thing, and believes no name, ID or claim in an object.
//
// Start reading at NewLocal and ForCluster. localowned.go holds how things are stored under a name for an owner. rule.go says
// what a cluster may do with a host, and names.go which names it may read; scopedcache.go keeps both for some seconds.
package backend
