   0.000000000 profile   {Resource:deployments Count:2 Nodes:3 FenceAfter:0s Start:false HandsOver:false Surge:1 Unavailable:1 Latency:7.099736ms WatchLag:157.899829ms CacheLag:1.837396721s WatchList:true PageSize:1 Grace:30s Stop:142.605866ms SlowStop:false Warm:0s Chaos:1m3.871296833s Chapters:4 Skew:2.893054259s Ahead:0s Crowded:true Keeps:false Reluctant:0 Recreate:false Ordered:false Indexed:false Mixed:false FenceOther:0s Loosens:false Command:true Partitions:0 Strategy: Stubborn:0 InProcess:true Unaware:false After:28.752335811s Controllers:1 Elects:false Assigned:all Budget:true}
   0.000000000 start     idalloc-controller-0#1 node-0
   0.000000000 stored    deployments worker 1001
   0.003330921 request   idalloc-controller-0#1 watch pods  200 false
   0.009450968 request   idalloc-controller-0#1 watch jobs  200 false
   0.010215142 request   idalloc-controller-0#1 watch deployments  200 false
   0.019634653 request   idalloc-controller-0#1 watch statefulsets  200 false
   0.022809477 event     idalloc-controller-0#1 deployments ADDED worker
   0.024410358 request   idalloc-controller-0#1 watch replicasets  200 false
   0.041256448 event     idalloc-controller-0#1 pods BOOKMARK 1001
   0.107038818 event     idalloc-controller-0#1 deployments BOOKMARK 1001
   0.111733680 event     idalloc-controller-0#1 statefulsets BOOKMARK 1001
   0.114138442 event     idalloc-controller-0#1 replicasets BOOKMARK 1001
   0.160724379 reconcile deployments/worker
   0.160724379 stored    replicasets worker-h1-9e3779b1 1002
   0.168936339 reconcile replicasets/worker-h1-9e3779b1
   0.168936339 stored    replicasets worker-h1-9e3779b1 1003
   0.256520780 reconcile deployments/worker
   0.256520780 stored    deployments worker 1004
   0.256520780 stored    replicasets worker-h1-9e3779b1 1005
   0.256520780 stored    deployments worker 1006
   0.267511474 event     idalloc-controller-0#1 jobs BOOKMARK 1001
   0.277461424 event     idalloc-controller-0#1 deployments MODIFIED worker
   0.296509568 reconcile replicasets/worker-h1-9e3779b1
   0.296509568 stored    pods worker-h1-9e3779b1-1 1007
   0.296509568 stored    pods worker-h1-9e3779b1-2 1008
   0.300000000 log       idalloc-controller-0#1 "level"=0 "msg"="Starting EventSource" "source"="kind source: *v1.PartialObjectMetadata[batch/v1 Job]"
   0.300000000 log       idalloc-controller-0#1 "level"=0 "msg"="Starting EventSource" "source"="kind source: *v1.Pod"
   0.300000000 log       idalloc-controller-0#1 "level"=0 "msg"="Starting EventSource" "source"="kind source: *v1.PartialObjectMetadata[apps/v1 ReplicaSet]"
   0.300000000 log       idalloc-controller-0#1 "level"=0 "msg"="Starting EventSource" "source"="channel source: 0x8d3430ff490"
   0.300000000 log       idalloc-controller-0#1 "level"=0 "msg"="Starting EventSource" "source"="kind source: *v1.PartialObjectMetadata[apps/v1 Deployment]"
   0.300000000 log       idalloc-controller-0#1 "level"=0 "msg"="Starting EventSource" "source"="kind source: *v1.PartialObjectMetadata[apps/v1 StatefulSet]"
   0.306344953 reconcile replicasets/worker-h1-9e3779b1
   0.306344953 stored    replicasets worker-h1-9e3779b1 1009
   0.318615700 event     idalloc-controller-0#1 pods ADDED worker-h1-9e3779b1-1
   0.335693853 event     idalloc-controller-0#1 pods ADDED worker-h1-9e3779b1-2
   0.348181015 reconcile deployments/worker
   0.348181015 stored    deployments worker 1010
   0.350954121 reconcile replicasets/worker-h1-9e3779b1
   0.400000000 log       idalloc-controller-0#1 "level"=0 "msg"="Starting Controller"
   0.400000000 log       idalloc-controller-0#1 "level"=0 "msg"="Starting workers" "worker count"=8
   0.401241216 request   idalloc-controller-0#1 get replicasets worker-h1-9e3779b1 200 false
   0.408832159 request   idalloc-controller-0#1 get deployments worker 200 false
   0.411407548 request   idalloc-controller-0#1 list replicasets  200 false
   0.438810560 event     idalloc-controller-0#1 deployments MODIFIED worker
   0.438810561 event     idalloc-controller-0#1 deployments MODIFIED worker
   0.441484966 stored    deployments worker 1011
   0.441484966 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2"}
   0.441484966 request   idalloc-controller-0#1 patch deployments worker 200 false
   0.454466301 stored    pods worker-h1-9e3779b1-2 1012
   0.454466301 log       worker-h1-9e3779b1-2 idalloc.dev/receipt {"uid":"78dde6c4-0000-4000-8000-000000000004","owner":"Deployment/worker","id":1,"write":"2ysiqekle1l3b"}
   0.454466301 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-2 200 false
   0.465394555 stored    pods worker-h1-9e3779b1-1 1013
   0.465394555 log       worker-h1-9e3779b1-1 idalloc.dev/receipt {"uid":"daa66d13-0000-4000-8000-000000000003","owner":"Deployment/worker","id":0,"write":"1y6c2v1d4pgam"}
   0.465394555 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-1 200 false
   0.465785277 event     idalloc-controller-0#1 replicasets ADDED worker-h1-9e3779b1
   0.465785278 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
   0.465785279 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
   0.465785280 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
   0.481888430 request   idalloc-controller-0#1 list pods  200 false
   0.494024371 request   idalloc-controller-0#1 list pods  200 false
   0.502620552 reconcile replicasets/worker-h1-9e3779b1
   0.506895695 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
   0.506895696 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-1
   0.508256508 stored    pods worker-h1-9e3779b1-2 1014
   0.508256508 log       worker-h1-9e3779b1-2 idalloc.dev/receipt {"uid":"78dde6c4-0000-4000-8000-000000000004","owner":"Deployment/worker","id":1,"begun":true,"write":"3p4o4pvzn0zwc"}
   0.508256508 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-2 200 false
   0.509293417 stored    pods worker-h1-9e3779b1-1 1015
   0.509293417 log       worker-h1-9e3779b1-1 idalloc.dev/receipt {"uid":"daa66d13-0000-4000-8000-000000000003","owner":"Deployment/worker","id":0,"begun":true,"write":"3pwpeei0slzpj"}
   0.509293417 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-1 200 false
   0.549849702 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
   0.590542124 reconcile deployments/worker
   0.590542124 stored    replicasets worker-h1-9e3779b1 1016
   0.590542124 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2"}
   0.601336055 reconcile deployments/worker
   0.612384382 event     idalloc-controller-0#1 deployments MODIFIED worker
   0.616523456 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
   0.637689732 reconcile replicasets/worker-h1-9e3779b1
   0.691852698 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-1
   1.782593643 sync      worker-h1-9e3779b1-1 daa66d13-0000-4000-8000-000000000003
   1.782593643 stored    pods worker-h1-9e3779b1-1 1017
   1.866148834 reconcile replicasets/worker-h1-9e3779b1
   1.911148637 reconcile deployments/worker
   2.051729095 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-1
   2.063740970 sync      worker-h1-9e3779b1-2 78dde6c4-0000-4000-8000-000000000004
   2.063740970 stored    pods worker-h1-9e3779b1-2 1018
   2.068593849 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
   2.103660148 start     worker-h1-9e3779b1-2#1 node-0
   2.103660148 begin     worker-h1-9e3779b1-2#1 1 2 1012
   2.226128138 reconcile deployments/worker
   2.229624757 reconcile replicasets/worker-h1-9e3779b1
   2.632658571 start     worker-h1-9e3779b1-1#1 node-0
   2.632658571 begin     worker-h1-9e3779b1-1#1 0 2 1013
   3.180675149 sync      worker-h1-9e3779b1-2 78dde6c4-0000-4000-8000-000000000004
   3.180675149 stored    pods worker-h1-9e3779b1-2 1019
   3.212993131 reconcile deployments/worker
   3.272620970 reconcile replicasets/worker-h1-9e3779b1
   3.272620970 stored    replicasets worker-h1-9e3779b1 1020
   3.341793266 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
   3.379866993 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
   3.441939089 reconcile deployments/worker
   3.441939089 stored    deployments worker 1021
   3.472340568 reconcile replicasets/worker-h1-9e3779b1
   3.486091998 reconcile deployments/worker
   3.493512106 event     idalloc-controller-0#1 deployments MODIFIED worker
   3.885030723 sync      worker-h1-9e3779b1-1 daa66d13-0000-4000-8000-000000000003
   3.885030723 stored    pods worker-h1-9e3779b1-1 1022
   3.895890408 reconcile deployments/worker
   3.938610926 reconcile replicasets/worker-h1-9e3779b1
   3.938610926 stored    replicasets worker-h1-9e3779b1 1023
   3.960164357 reconcile deployments/worker
   3.960164357 stored    deployments worker 1024
   3.994327887 reconcile replicasets/worker-h1-9e3779b1
   4.069515069 sync      worker-h1-9e3779b1-2 78dde6c4-0000-4000-8000-000000000004
   4.171648477 event     idalloc-controller-0#1 deployments MODIFIED worker
   4.181926096 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
   4.237987207 reconcile deployments/worker
   4.252729711 sync      worker-h1-9e3779b1-1 daa66d13-0000-4000-8000-000000000003
   4.277272450 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-1
   9.835005182 fault     hide@9.835s+1m0s
   9.835005182 stored    pods worker-h1-9e3779b1-2 1025
   9.835005182 stored    pods worker-h1-9e3779b1-2 1026
   9.845757870 reconcile deployments/worker
   9.852255187 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
   9.873888031 fault     undone@9.874s+50.693s
   9.873888031 stored    deployments worker 1027
   9.880071255 reconcile deployments/worker
   9.880071255 stored    replicasets worker-h1-9e3779b1 1028
   9.889923938 reconcile replicasets/worker-h1-9e3779b1
   9.889923938 stored    pods worker-h1-9e3779b1-2 1029
   9.889923938 stored    pods worker-h1-9e3779b1-3 1030
   9.889923938 stored    pods worker-h1-9e3779b1-4 1031
   9.889923938 stored    replicasets worker-h1-9e3779b1 1032
   9.898056134 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
   9.903481340 reconcile replicasets/worker-h1-9e3779b1
   9.903481340 stored    replicasets worker-h1-9e3779b1 1033
   9.949919414 reconcile replicasets/worker-h1-9e3779b1
   9.956301567 reconcile deployments/worker
   9.956301567 stored    deployments worker 1034
   9.966669728 event     idalloc-controller-0#1 deployments MODIFIED worker
   9.966669729 event     idalloc-controller-0#1 deployments MODIFIED worker
   9.976943879 reconcile deployments/worker
   9.986292788 request   idalloc-controller-0#1 get deployments worker 200 false
   9.987152390 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
   9.990059806 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
   9.994914915 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
  10.004596540 stored    pods worker-h1-9e3779b1-2 1035
  10.004596540 log       worker-h1-9e3779b1-2 idalloc.dev/receipt {"uid":"78dde6c4-0000-4000-8000-000000000004","owner":"Deployment/worker","id":1,"write":"25ptoj1mfrrvc"}
  10.004596540 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-2 200 false
  10.012327288 request   idalloc-controller-0#1 list pods  200 false
  10.019598552 request   idalloc-controller-0#1 list pods  200 false
  10.023408083 stored    pods worker-h1-9e3779b1-2 1036
  10.023408083 log       worker-h1-9e3779b1-2 idalloc.dev/receipt {"uid":"78dde6c4-0000-4000-8000-000000000004","owner":"Deployment/worker","id":1,"begun":true,"write":"2hnwqmhqmzxsp"}
  10.023408083 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-2 200 false
  10.027819578 fault     hide@10.028s+14.988s
  10.027819578 stored    pods worker-h1-9e3779b1-1 1037
  10.027819578 stored    pods worker-h1-9e3779b1-1 1038
  10.028596708 stored    pods worker-h1-9e3779b1-1 1039
  10.028596708 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-1 200 false
  10.042368647 fault     undone@10.042s+1m43.035s
  10.042368647 stored    pods worker-h1-9e3779b1-3 1040
  10.042368647 stored    pods worker-h1-9e3779b1-3 1041
  10.049389164 reconcile deployments/worker
  10.064972666 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  10.083477200 fault     strip@10.083s+255ms
  10.172451043 fault     strip@10.172s+13.593s
  10.186066141 fault     edit@10.186s
  10.186066141 stored    deployments worker 1042
  10.186066141 log       worker idalloc.dev/assignment {"1":"worker-h1-9e3779b1-2"}
  10.208525161 reconcile deployments/worker
  10.208525161 stored    replicasets worker-h1-9e3779b1 1043
  10.208525161 log       worker-h1-9e3779b1 idalloc.dev/assignment {"1":"worker-h1-9e3779b1-2"}
  10.210619650 reconcile deployments/worker
  10.211091939 reconcile replicasets/worker-h1-9e3779b1
  10.211091939 stored    pods worker-h1-9e3779b1-1 1044
  10.211091939 stored    pods worker-h1-9e3779b1-5 1045
  10.211091939 stored    pods worker-h1-9e3779b1-6 1046
  10.211091939 stored    replicasets worker-h1-9e3779b1 1047
  10.258463671 fault     hide@10.258s+50.594s
  10.258463671 stored    pods worker-h1-9e3779b1-4 1048
  10.272187728 reconcile deployments/worker
  10.272187728 stored    deployments worker 1049
  10.287880025 sync      worker-h1-9e3779b1-1 daa66d13-0000-4000-8000-000000000003
  10.287880025 heard     worker-h1-9e3779b1-1#1 0 3 1013
  10.293346430 reconcile deployments/worker
  10.319754154 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  10.319754155 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  10.354607605 reconcile replicasets/worker-h1-9e3779b1
  10.354607605 stored    pods worker-h1-9e3779b1-4 1050
  10.354607605 stored    pods worker-h1-9e3779b1-7 1051
  10.354607605 stored    replicasets worker-h1-9e3779b1 1052
  10.399994757 fault     hide@10.4s+1m0s
  10.399994757 stored    pods worker-h1-9e3779b1-2 1053
  10.416333723 fault     strip@10.416s+30.829s
  10.455677158 reconcile deployments/worker
  10.455677158 stored    deployments worker 1054
  10.469002025 reconcile deployments/worker
  10.473310632 reconcile replicasets/worker-h1-9e3779b1
  10.473310632 stored    replicasets worker-h1-9e3779b1 1055
  10.494889684 fault     edit@10.495s
  10.494889684 stored    deployments worker 1056
  10.494889684 log       worker idalloc.dev/assignment {}
  10.503538746 event     idalloc-controller-0#1 deployments MODIFIED worker
  10.503538747 event     idalloc-controller-0#1 deployments MODIFIED worker
  10.552490800 reconcile deployments/worker
  10.552490800 stored    replicasets worker-h1-9e3779b1 1057
  10.552490800 log       worker-h1-9e3779b1 idalloc.dev/assignment {}
  10.552490800 stored    deployments worker 1058
  10.568122055 request   gc-2vcr9538k5d8d-jr4ee73u7nmu#1 get deployments worker 200 false
  10.591138434 request   gc-2vcr9538k5d8d-jr4ee73u7nmu#1 list pods  200 false
  10.604248937 request   gc-2vcr9538k5d8d-jr4ee73u7nmu#1 list pods  200 false
  10.608620975 request   gc-2vcr9538k5d8d-jr4ee73u7nmu#1 list pods  200 false
  10.617125100 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  10.617125101 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  10.617125102 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  10.620626533 request   gc-2vcr9538k5d8d-jr4ee73u7nmu#1 list pods  200 false
  10.629243818 fault     corrupt-receipt@10.629s
  10.629243818 stored    pods worker-h1-9e3779b1-6 1059
  10.629243818 log       worker-h1-9e3779b1-6 idalloc.dev/receipt null
  10.633062395 reconcile replicasets/worker-h1-9e3779b1
  10.638594544 request   gc-2vcr9538k5d8d-jr4ee73u7nmu#1 get deployments worker 200 false
  10.654854425 request   gc-2vcr9538k5d8d-jr4ee73u7nmu#1 list leases  200 false
  10.655763260 exit      gc-2vcr9538k5d8d-jr4ee73u7nmu#1 
  10.672882921 fault     strip@10.673s+41.974s
  10.743823242 reconcile deployments/worker
  10.834527002 event     idalloc-controller-0#1 pods ADDED worker-h1-9e3779b1-3
  10.834527003 event     idalloc-controller-0#1 pods ADDED worker-h1-9e3779b1-4
  10.834527004 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
  10.834527005 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
  10.834527006 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-1
  10.834527007 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-1
  10.834527008 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-1
  10.834527009 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-3
  10.834527010 event     idalloc-controller-0#1 pods DELETED worker-h1-9e3779b1-3
  10.834527011 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-1
  10.834527012 event     idalloc-controller-0#1 pods ADDED worker-h1-9e3779b1-5
  10.834527013 event     idalloc-controller-0#1 pods ADDED worker-h1-9e3779b1-6
  10.834527014 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-4
  10.834527015 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-4
  10.834527016 event     idalloc-controller-0#1 pods ADDED worker-h1-9e3779b1-7
  10.834527017 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
  10.834527018 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-6
  10.842450757 request   idalloc-controller-0#1 get deployments worker 200 false
  10.847184309 stored    deployments worker 1060
  10.847184309 log       worker idalloc.dev/assignment 
  10.847184309 request   idalloc-controller-0#1 patch deployments worker 200 false
  10.847618157 stored    deployments worker 1061
  10.847618157 log       worker idalloc.dev/assignment {}
  10.849628220 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="3ebe0169-67fa-41e2-b919-5530b00bad77"
  10.862330193 request   idalloc-controller-0#1 get pods worker-h1-9e3779b1-4 200 false
  10.862532620 log       idalloc-controller-0#1 "level"=0 "msg"="a pod gets no id" "pod"="worker-h1-9e3779b1-4" "namespace"="sim" "detail"="the pod has no controller: pod worker-h1-9e3779b1-4 in namespace sim stands alone: run it from a Deployment, StatefulSet, ReplicaSet or Job"
  10.865569611 request   idalloc-controller-0#1 create events  201 false
  10.921787057 request   idalloc-controller-0#1 patch deployments worker 422 false
  10.931893934 request   idalloc-controller-0#1 get deployments worker 200 false
  10.938563093 sync      worker-h1-9e3779b1-2 78dde6c4-0000-4000-8000-000000000004
  10.938563093 heard     worker-h1-9e3779b1-2#1 1 3 1035
  10.938897369 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  10.971383506 request   idalloc-controller-0#1 get deployments worker 200 false
  10.983566650 stored    deployments worker 1062
  10.983566650 log       worker idalloc.dev/assignment 
  10.983566650 request   idalloc-controller-0#1 patch deployments worker 200 false
  10.998251888 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="dce4e500-ec74-41a4-9042-38b1173e428a"
  11.000456591 stored    deployments worker 1063
  11.000456591 log       worker idalloc.dev/assignment {}
  11.008658330 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.008658331 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.008658332 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.008658333 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.008658334 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.008658335 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.011833966 request   idalloc-controller-0#1 patch deployments worker 422 false
  11.033406035 request   idalloc-controller-0#1 get deployments worker 200 false
  11.033869464 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  11.051865901 request   idalloc-controller-0#1 get deployments worker 200 false
  11.056594745 stored    deployments worker 1064
  11.056594745 log       worker idalloc.dev/assignment 
  11.056594745 request   idalloc-controller-0#1 patch deployments worker 200 false
  11.056955875 reconcile deployments/worker
  11.060512460 stored    deployments worker 1065
  11.060512460 log       worker idalloc.dev/assignment {}
  11.071625217 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="0c1c2915-13da-4f75-b2ad-da03531cd6c9"
  11.120920780 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.121962978 request   idalloc-controller-0#1 patch deployments worker 422 false
  11.135121883 request   idalloc-controller-0#1 get deployments worker 200 false
  11.135941669 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  11.140222792 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.140964591 request   idalloc-controller-0#1 get deployments worker 200 false
  11.154273697 stored    deployments worker 1066
  11.154273697 log       worker idalloc.dev/assignment 
  11.154273697 request   idalloc-controller-0#1 patch deployments worker 200 false
  11.166501624 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="00036ae6-ed7b-489e-ba74-24d8ab350b4f"
  11.185377762 stored    deployments worker 1067
  11.185377762 log       worker idalloc.dev/assignment {}
  11.187009105 reconcile deployments/worker
  11.224734734 request   idalloc-controller-0#1 patch deployments worker 422 false
  11.229909033 request   idalloc-controller-0#1 get deployments worker 200 false
  11.231311806 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  11.239380046 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.239380047 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.239380048 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.240814816 request   idalloc-controller-0#1 get deployments worker 200 false
  11.255936365 stored    deployments worker 1068
  11.255936365 log       worker idalloc.dev/assignment 
  11.255936365 request   idalloc-controller-0#1 patch deployments worker 200 false
  11.269897235 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="e2e8d843-d28e-4d15-a0b3-6b87ee7859be"
  11.271335045 request   idalloc-controller-0#1 patch deployments worker 422 false
  11.278861329 request   idalloc-controller-0#1 get deployments worker 200 false
  11.279089353 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  11.291107485 stored    deployments worker 1069
  11.291107485 log       worker idalloc.dev/assignment {}
  11.322579067 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.322579068 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.324394969 request   idalloc-controller-0#1 get deployments worker 200 false
  11.341218472 stored    deployments worker 1070
  11.341218472 log       worker idalloc.dev/assignment 
  11.341218472 request   idalloc-controller-0#1 patch deployments worker 200 false
  11.342117152 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="263d62cb-2a9f-42a4-8e9c-7c83f51021bd"
  11.349113888 request   idalloc-controller-0#1 patch deployments worker 422 false
  11.353955842 request   idalloc-controller-0#1 get deployments worker 200 false
  11.360261949 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  11.367392028 reconcile deployments/worker
  11.380774531 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.382938282 request   idalloc-controller-0#1 get deployments worker 200 false
  11.397692548 request   idalloc-controller-0#1 patch deployments worker 200 false
  11.400825188 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="0e6c2870-661a-4820-8182-c771cfe594aa"
  11.406237019 stored    deployments worker 1071
  11.406237019 log       worker idalloc.dev/assignment {}
  11.419209902 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.429349175 request   idalloc-controller-0#1 get deployments worker 200 false
  11.437327661 reconcile deployments/worker
  11.440161727 stored    deployments worker 1072
  11.440161727 log       worker idalloc.dev/assignment 
  11.440161727 request   idalloc-controller-0#1 patch deployments worker 200 false
  11.445411251 reconcile deployments/worker
  11.445638133 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="298387d1-aadc-4f4e-9dde-f0df4b29e280"
  11.452575167 stored    deployments worker 1073
  11.452575167 log       worker idalloc.dev/assignment {}
  11.543184113 reconcile deployments/worker
  11.561861441 request   idalloc-controller-0#1 patch deployments worker 422 false
  11.574262898 request   idalloc-controller-0#1 get deployments worker 200 false
  11.576039096 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  11.606087966 request   idalloc-controller-0#1 get deployments worker 200 false
  11.620357861 stored    deployments worker 1074
  11.620357861 log       worker idalloc.dev/assignment 
  11.620357861 request   idalloc-controller-0#1 patch deployments worker 200 false
  11.621250171 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="bb01edfa-ca89-4b4f-8a72-759efd4aec84"
  11.642722635 stored    deployments worker 1075
  11.642722635 log       worker idalloc.dev/assignment {}
  11.676133986 request   idalloc-controller-0#1 patch deployments worker 422 false
  11.687525226 request   idalloc-controller-0#1 get deployments worker 200 false
  11.687527184 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  11.713799021 reconcile deployments/worker
  11.739903901 request   idalloc-controller-0#1 get deployments worker 200 false
  11.744943437 stored    deployments worker 1076
  11.744943437 log       worker idalloc.dev/assignment 
  11.744943437 request   idalloc-controller-0#1 patch deployments worker 200 false
  11.749318545 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="ff922d81-a9d4-4455-8136-89ae12285296"
  11.758005342 stored    deployments worker 1077
  11.758005342 log       worker idalloc.dev/assignment {}
  11.760830085 reconcile deployments/worker
  11.837731594 request   idalloc-controller-0#1 patch deployments worker 422 false
  11.846563106 request   idalloc-controller-0#1 get deployments worker 200 false
  11.847624741 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.847624742 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.847624743 event     idalloc-controller-0#1 deployments MODIFIED worker
  11.852543134 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  11.853010961 request   idalloc-controller-0#1 get deployments worker 200 false
  11.873574003 stored    deployments worker 1078
  11.873574003 log       worker idalloc.dev/assignment 
  11.873574003 request   idalloc-controller-0#1 patch deployments worker 200 false
  11.873730382 stored    deployments worker 1079
  11.873730382 log       worker idalloc.dev/assignment {}
  11.877896644 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="52ad693d-759b-42d6-b7fb-891430aae878"
  11.883790857 reconcile deployments/worker
  11.931784948 request   idalloc-controller-0#1 patch deployments worker 422 false
  11.971874256 request   idalloc-controller-0#1 get deployments worker 200 false
  11.972473998 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  12.004248497 request   idalloc-controller-0#1 get deployments worker 200 false
  12.019207811 stored    deployments worker 1080
  12.019207811 log       worker idalloc.dev/assignment 
  12.019207811 request   idalloc-controller-0#1 patch deployments worker 200 false
  12.023166675 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="def9e231-77cc-4703-b8be-6b92ae6dd36d"
  12.041552033 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.041552034 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.041552035 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.041552036 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.041552037 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.042115901 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.058073709 request   idalloc-controller-0#1 patch deployments worker 422 false
  12.076820447 request   idalloc-controller-0#1 get deployments worker 200 false
  12.095139755 stored    deployments worker 1081
  12.095139755 log       worker idalloc.dev/assignment {}
  12.095657373 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  12.096331089 request   idalloc-controller-0#1 get deployments worker 200 false
  12.111355354 stored    deployments worker 1082
  12.111355354 log       worker idalloc.dev/assignment 
  12.111355354 request   idalloc-controller-0#1 patch deployments worker 200 false
  12.119146683 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.120070611 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="a3190e21-2d0e-485a-9254-cb9806da6745"
  12.128471017 stored    deployments worker 1083
  12.128471017 log       worker idalloc.dev/assignment {}
  12.133130515 request   idalloc-controller-0#1 patch deployments worker 422 false
  12.140153744 request   idalloc-controller-0#1 get deployments worker 200 false
  12.141379443 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  12.145077656 reconcile deployments/worker
  12.177736255 request   idalloc-controller-0#1 get deployments worker 200 false
  12.188252323 stored    deployments worker 1084
  12.188252323 log       worker idalloc.dev/assignment 
  12.188252323 request   idalloc-controller-0#1 patch deployments worker 200 false
  12.193261882 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="1cae5c74-ca69-484d-bd44-bd82ccc08c9c"
  12.207379128 stored    deployments worker 1085
  12.207379128 log       worker idalloc.dev/assignment {}
  12.245477951 request   idalloc-controller-0#1 patch deployments worker 422 false
  12.280119282 request   idalloc-controller-0#1 get deployments worker 200 false
  12.284444004 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  12.300478587 reconcile deployments/worker
  12.315591601 request   idalloc-controller-0#1 get deployments worker 200 false
  12.329311453 stored    deployments worker 1086
  12.329311453 log       worker idalloc.dev/assignment 
  12.329311453 request   idalloc-controller-0#1 patch deployments worker 200 false
  12.329699306 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="cbc3aecf-7e05-427b-922d-e17b9ce33095"
  12.332538009 stored    deployments worker 1087
  12.332538009 log       worker idalloc.dev/assignment {}
  12.339016674 reconcile deployments/worker
  12.389050704 request   idalloc-controller-0#1 patch deployments worker 422 false
  12.410849310 request   idalloc-controller-0#1 get deployments worker 200 false
  12.410971165 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  12.422608943 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.422608944 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.422608945 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.425298345 request   idalloc-controller-0#1 get deployments worker 200 false
  12.440349379 stored    deployments worker 1088
  12.440349379 log       worker idalloc.dev/assignment 
  12.440349379 request   idalloc-controller-0#1 patch deployments worker 200 false
  12.444994571 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="0dc7d08c-5348-4630-8a9f-167dfcb32b43"
  12.452737451 reconcile deployments/worker
  12.453122603 stored    deployments worker 1089
  12.453122603 log       worker idalloc.dev/assignment {}
  12.454796078 request   idalloc-controller-0#1 patch deployments worker 422 false
  12.465689309 request   idalloc-controller-0#1 get deployments worker 200 false
  12.471611164 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  12.516936814 request   idalloc-controller-0#1 get deployments worker 200 false
  12.522930750 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.525691004 stored    deployments worker 1090
  12.525691004 log       worker idalloc.dev/assignment 
  12.525691004 request   idalloc-controller-0#1 patch deployments worker 200 false
  12.529809887 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="008d4f48-6b76-4e6a-9b66-9bd3a57120bb"
  12.533195196 request   idalloc-controller-0#1 patch deployments worker 422 false
  12.542405635 request   idalloc-controller-0#1 get deployments worker 200 false
  12.545417729 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  12.574867253 stored    deployments worker 1091
  12.574867253 log       worker idalloc.dev/assignment {}
  12.591382968 request   idalloc-controller-0#1 get deployments worker 200 false
  12.595848347 stored    deployments worker 1092
  12.595848347 log       worker idalloc.dev/assignment 
  12.595848347 request   idalloc-controller-0#1 patch deployments worker 200 false
  12.600971947 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="611113b6-c93a-46bc-81e0-d8024b89a66f"
  12.623968553 stored    deployments worker 1093
  12.623968553 log       worker idalloc.dev/assignment {}
  12.639046780 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.639046781 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.639046782 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.639046783 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.644685845 request   idalloc-controller-0#1 patch deployments worker 422 false
  12.655189417 request   idalloc-controller-0#1 get deployments worker 200 false
  12.655266931 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  12.662122812 request   idalloc-controller-0#1 get deployments worker 200 false
  12.670756915 stored    deployments worker 1094
  12.670756915 log       worker idalloc.dev/assignment 
  12.670756915 request   idalloc-controller-0#1 patch deployments worker 200 false
  12.677647041 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="6daabcd4-bbc2-4a5a-a26d-5214811678bb"
  12.710804948 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.710804949 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.710804950 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.733255350 stored    deployments worker 1095
  12.733255350 log       worker idalloc.dev/assignment {}
  12.735380290 request   idalloc-controller-0#1 patch deployments worker 422 false
  12.750265121 request   idalloc-controller-0#1 get deployments worker 200 false
  12.752533470 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  12.764463596 request   idalloc-controller-0#1 get deployments worker 200 false
  12.768910644 reconcile deployments/worker
  12.769114890 stored    deployments worker 1096
  12.769114890 log       worker idalloc.dev/assignment 
  12.769114890 request   idalloc-controller-0#1 patch deployments worker 200 false
  12.769646953 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="e1851f6a-43e8-4534-8c69-d6bc3ba804ca"
  12.772360208 stored    deployments worker 1097
  12.772360208 log       worker idalloc.dev/assignment {}
  12.822802117 request   idalloc-controller-0#1 patch deployments worker 422 false
  12.832454460 request   idalloc-controller-0#1 get deployments worker 200 false
  12.834490483 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  12.865846743 reconcile deployments/worker
  12.882647714 request   idalloc-controller-0#1 get deployments worker 200 false
  12.894491177 stored    deployments worker 1098
  12.894491177 log       worker idalloc.dev/assignment 
  12.894491177 request   idalloc-controller-0#1 patch deployments worker 200 false
  12.895185998 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="b8e8a79c-5119-4967-bc84-b3886365ba20"
  12.897877179 stored    deployments worker 1099
  12.897877179 log       worker idalloc.dev/assignment {}
  12.944884830 event     idalloc-controller-0#1 deployments MODIFIED worker
  12.965065641 request   idalloc-controller-0#1 patch deployments worker 422 false
  12.983601095 request   idalloc-controller-0#1 get deployments worker 200 false
  12.984607599 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  13.033149001 request   idalloc-controller-0#1 get deployments worker 200 false
  13.041611525 stored    deployments worker 1100
  13.041611525 log       worker idalloc.dev/assignment 
  13.041611525 request   idalloc-controller-0#1 patch deployments worker 200 false
  13.051308435 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="4bb0ae86-0e52-4153-9f81-f76ff669d436"
  13.077104180 reconcile deployments/worker
  13.079200299 stored    deployments worker 1101
  13.079200299 log       worker idalloc.dev/assignment {}
  13.115456072 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.115456073 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.115456074 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.115456075 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.115456076 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.115456077 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.115659505 reconcile deployments/worker
  13.130098167 request   idalloc-controller-0#1 patch deployments worker 422 false
  13.174597390 request   idalloc-controller-0#1 get deployments worker 200 false
  13.176310956 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  13.181712731 request   idalloc-controller-0#1 get deployments worker 200 false
  13.184381954 stored    deployments worker 1102
  13.184381954 log       worker idalloc.dev/assignment 
  13.184381954 request   idalloc-controller-0#1 patch deployments worker 200 false
  13.191198506 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="5f40023a-44e8-406e-8908-5ea031704212"
  13.192696462 stored    deployments worker 1103
  13.192696462 log       worker idalloc.dev/assignment {}
  13.264273641 request   idalloc-controller-0#1 patch deployments worker 422 false
  13.276883311 request   idalloc-controller-0#1 get deployments worker 200 false
  13.287988252 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  13.340666370 request   idalloc-controller-0#1 get deployments worker 200 false
  13.388782187 stored    deployments worker 1104
  13.388782187 log       worker idalloc.dev/assignment 
  13.388782187 request   idalloc-controller-0#1 patch deployments worker 200 false
  13.393959563 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="07d3360e-50c7-43f1-85bd-4ae2a5338d6e"
  13.399362145 stored    deployments worker 1105
  13.399362145 log       worker idalloc.dev/assignment {}
  13.444436319 request   idalloc-controller-0#1 patch deployments worker 422 false
  13.452214051 request   idalloc-controller-0#1 get deployments worker 200 false
  13.477040843 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  13.512236307 request   idalloc-controller-0#1 get deployments worker 200 false
  13.515832372 stored    deployments worker 1106
  13.515832372 log       worker idalloc.dev/assignment 
  13.515832372 request   idalloc-controller-0#1 patch deployments worker 200 false
  13.539731241 reconcile deployments/worker
  13.547398942 stored    deployments worker 1107
  13.547398942 log       worker idalloc.dev/assignment {}
  13.559627935 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="5d09816a-be63-432e-bdf8-eb6143e941f3"
  13.571264185 reconcile deployments/worker
  13.610106096 request   idalloc-controller-0#1 patch deployments worker 422 false
  13.629564780 request   idalloc-controller-0#1 get deployments worker 200 false
  13.650608987 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  13.705826663 request   idalloc-controller-0#1 get deployments worker 200 false
  13.709277870 stored    deployments worker 1108
  13.709277870 log       worker idalloc.dev/assignment 
  13.709277870 request   idalloc-controller-0#1 patch deployments worker 200 false
  13.719134066 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.719134067 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.719134068 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.719134069 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.719134070 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.719134071 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.719134072 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.724413729 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.728011710 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="7fa988ec-703b-481b-9ed1-5404b5176b63"
  13.731647304 request   idalloc-controller-0#1 patch deployments worker 422 false
  13.739446482 stored    deployments worker 1109
  13.739446482 log       worker idalloc.dev/assignment {}
  13.749033907 request   idalloc-controller-0#1 get deployments worker 200 false
  13.751146726 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  13.755396618 reconcile deployments/worker
  13.793388755 request   idalloc-controller-0#1 get deployments worker 200 false
  13.799658403 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.815898848 stored    deployments worker 1110
  13.815898848 log       worker idalloc.dev/assignment 
  13.815898848 request   idalloc-controller-0#1 patch deployments worker 200 false
  13.818376068 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="83874c4c-31dc-4992-846a-e0385596e2d9"
  13.822979498 reconcile deployments/worker
  13.824876052 request   idalloc-controller-0#1 patch deployments worker 422 false
  13.826163704 request   idalloc-controller-0#1 get deployments worker 200 false
  13.827842101 stored    deployments worker 1111
  13.827842101 log       worker idalloc.dev/assignment {}
  13.833637419 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  13.869718556 request   idalloc-controller-0#1 get deployments worker 200 false
  13.875401429 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.880697809 stored    deployments worker 1112
  13.880697809 log       worker idalloc.dev/assignment 
  13.880697809 request   idalloc-controller-0#1 patch deployments worker 200 false
  13.882420529 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="fe0066d2-9ce4-4d72-8275-5d7d769b36fe"
  13.884328753 request   idalloc-controller-0#1 patch deployments worker 422 false
  13.892746776 stored    deployments worker 1113
  13.892746776 log       worker idalloc.dev/assignment {}
  13.903724585 request   idalloc-controller-0#1 get deployments worker 200 false
  13.906758802 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  13.938698717 request   idalloc-controller-0#1 get deployments worker 200 false
  13.938786044 reconcile deployments/worker
  13.945080116 event     idalloc-controller-0#1 deployments MODIFIED worker
  13.964869638 stored    deployments worker 1114
  13.964869638 log       worker idalloc.dev/assignment 
  13.964869638 request   idalloc-controller-0#1 patch deployments worker 200 false
  13.968453618 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="f7b4dffd-8655-4536-bfa8-4cc261f546fc"
  13.969366634 request   idalloc-controller-0#1 patch deployments worker 422 false
  13.975540016 request   idalloc-controller-0#1 get deployments worker 200 false
  13.976833866 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  14.000620979 stored    deployments worker 1115
  14.000620979 log       worker idalloc.dev/assignment {}
  14.014948544 request   idalloc-controller-0#1 get deployments worker 200 false
  14.019573819 stored    deployments worker 1116
  14.019573819 log       worker idalloc.dev/assignment 
  14.019573819 request   idalloc-controller-0#1 patch deployments worker 200 false
  14.027513537 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="6bf6061c-0855-430f-a37d-c7330e07a477"
  14.030038080 stored    deployments worker 1117
  14.030038080 log       worker idalloc.dev/assignment {}
  14.078746304 request   idalloc-controller-0#1 patch deployments worker 422 false
  14.096365021 request   idalloc-controller-0#1 get deployments worker 200 false
  14.099279460 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  14.112085702 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.112085703 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.114144749 request   idalloc-controller-0#1 get deployments worker 200 false
  14.158687908 stored    deployments worker 1118
  14.158687908 log       worker idalloc.dev/assignment 
  14.158687908 request   idalloc-controller-0#1 patch deployments worker 200 false
  14.177899428 reconcile deployments/worker
  14.178161899 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="53fcadaf-9e3d-4183-967d-af1454470cbc"
  14.201835405 request   idalloc-controller-0#1 patch deployments worker 422 false
  14.204920618 stored    deployments worker 1119
  14.204920618 log       worker idalloc.dev/assignment {}
  14.211080774 request   idalloc-controller-0#1 get deployments worker 200 false
  14.219186048 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  14.240704995 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.240704996 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.240704997 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.240704998 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.254347330 request   idalloc-controller-0#1 get deployments worker 200 false
  14.275468514 stored    deployments worker 1120
  14.275468514 log       worker idalloc.dev/assignment 
  14.275468514 request   idalloc-controller-0#1 patch deployments worker 200 false
  14.284522563 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="d5fad74c-7247-482f-ba4a-36fab7f68c81"
  14.290006817 reconcile deployments/worker
  14.297604140 request   idalloc-controller-0#1 patch deployments worker 422 false
  14.298836438 request   idalloc-controller-0#1 get deployments worker 200 false
  14.301128605 stored    deployments worker 1121
  14.301128605 log       worker idalloc.dev/assignment {}
  14.308146885 reconcile deployments/worker
  14.309631760 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  14.337428295 request   idalloc-controller-0#1 get deployments worker 200 false
  14.347129723 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.351635317 stored    deployments worker 1122
  14.351635317 log       worker idalloc.dev/assignment 
  14.351635317 request   idalloc-controller-0#1 patch deployments worker 200 false
  14.362084089 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="dbbd5246-6b57-44c3-9d2e-b86fdf9ea626"
  14.363443529 request   idalloc-controller-0#1 patch deployments worker 422 false
  14.376110196 stored    deployments worker 1123
  14.376110196 log       worker idalloc.dev/assignment {}
  14.377108901 reconcile deployments/worker
  14.394403130 request   idalloc-controller-0#1 get deployments worker 200 false
  14.399911718 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  14.438782593 request   idalloc-controller-0#1 get deployments worker 200 false
  14.446012737 stored    deployments worker 1124
  14.446012737 log       worker idalloc.dev/assignment 
  14.446012737 request   idalloc-controller-0#1 patch deployments worker 200 false
  14.447484048 stored    deployments worker 1125
  14.447484048 log       worker idalloc.dev/assignment {}
  14.448337146 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="0bac7d89-b480-494a-a889-46f73452bf63"
  14.502783412 request   idalloc-controller-0#1 patch deployments worker 422 false
  14.532596380 request   idalloc-controller-0#1 get deployments worker 200 false
  14.534714003 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  14.552347500 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.552347501 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.552347502 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.555427061 request   idalloc-controller-0#1 get deployments worker 200 false
  14.556084410 reconcile deployments/worker
  14.572310076 stored    deployments worker 1126
  14.572310076 log       worker idalloc.dev/assignment 
  14.572310076 request   idalloc-controller-0#1 patch deployments worker 200 false
  14.574900520 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.582301543 stored    deployments worker 1127
  14.582301543 log       worker idalloc.dev/assignment {}
  14.582831437 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="fd1f6ebb-5060-4367-bb68-7f2b494d0feb"
  14.583675279 request   idalloc-controller-0#1 patch deployments worker 422 false
  14.597640224 request   idalloc-controller-0#1 get deployments worker 200 false
  14.598065130 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  14.615012717 VIOLATION bounded requests at 14.615s: idalloc-controller-0#1 wrote the owner more than 60 times within a minute
  14.633563212 request   idalloc-controller-0#1 get deployments worker 200 false
  14.641254102 stored    deployments worker 1128
  14.641254102 log       worker idalloc.dev/assignment 
  14.641254102 request   idalloc-controller-0#1 patch deployments worker 200 false
  14.648445568 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="8b8f9b1f-17d2-4aae-b250-3945a905d001"
  14.652039648 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.652039649 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.653692458 request   idalloc-controller-0#1 patch deployments worker 422 false
  14.675165245 reconcile deployments/worker
  14.684307912 request   idalloc-controller-0#1 get deployments worker 200 false
  14.685399338 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  14.711322241 stored    deployments worker 1129
  14.711322241 log       worker idalloc.dev/assignment {}
  14.722114917 request   idalloc-controller-0#1 get deployments worker 200 false
  14.732076224 stored    deployments worker 1130
  14.732076224 log       worker idalloc.dev/assignment 
  14.732076224 request   idalloc-controller-0#1 patch deployments worker 200 false
  14.735976989 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="7ae77766-f3b1-43f4-baff-55d954bb75e2"
  14.755249261 stored    deployments worker 1131
  14.755249261 log       worker idalloc.dev/assignment {}
  14.770812952 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.770812953 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.770812954 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.770812955 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.770812956 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.770812957 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.770812958 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.772348342 request   idalloc-controller-0#1 patch deployments worker 422 false
  14.779541748 request   idalloc-controller-0#1 get deployments worker 200 false
  14.789278398 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  14.797893706 request   idalloc-controller-0#1 get deployments worker 200 false
  14.807683127 stored    deployments worker 1132
  14.807683127 log       worker idalloc.dev/assignment 
  14.807683127 request   idalloc-controller-0#1 patch deployments worker 200 false
  14.810343108 reconcile deployments/worker
  14.819464711 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="74a09e6b-d70c-4944-a2ac-d6d2326b8524"
  14.827069202 stored    deployments worker 1133
  14.827069202 log       worker idalloc.dev/assignment {}
  14.855068781 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.856472208 event     idalloc-controller-0#1 deployments MODIFIED worker
  14.870597163 request   idalloc-controller-0#1 patch deployments worker 422 false
  14.876037345 request   idalloc-controller-0#1 get deployments worker 200 false
  14.882650578 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  14.893476574 request   idalloc-controller-0#1 get deployments worker 200 false
  14.893662299 reconcile deployments/worker
  14.906693717 stored    deployments worker 1134
  14.906693717 log       worker idalloc.dev/assignment 
  14.906693717 request   idalloc-controller-0#1 patch deployments worker 200 false
  14.908569851 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="51d9eb29-47ef-47ef-9d3b-66aa149dada9"
  14.928379416 stored    deployments worker 1135
  14.928379416 log       worker idalloc.dev/assignment {}
  14.959280395 request   idalloc-controller-0#1 patch deployments worker 422 false
  14.970657830 request   idalloc-controller-0#1 get deployments worker 200 false
  15.014606531 reconcile deployments/worker
  15.042295519 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  15.080154780 request   idalloc-controller-0#1 get deployments worker 200 false
  15.085489047 stored    deployments worker 1136
  15.085489047 log       worker idalloc.dev/assignment 
  15.085489047 request   idalloc-controller-0#1 patch deployments worker 200 false
  15.086452917 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="a96f4b0d-89ec-4730-9480-52ffe3a4384b"
  15.093405296 event     idalloc-controller-0#1 deployments MODIFIED worker
  15.093405297 event     idalloc-controller-0#1 deployments MODIFIED worker
  15.093405298 event     idalloc-controller-0#1 deployments MODIFIED worker
  15.094142076 request   idalloc-controller-0#1 patch deployments worker 422 false
  15.119883840 stored    deployments worker 1137
  15.119883840 log       worker idalloc.dev/assignment {}
  15.121750078 request   idalloc-controller-0#1 get deployments worker 200 false
  15.122129572 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  15.123609999 request   idalloc-controller-0#1 get deployments worker 200 false
  15.131959057 stored    deployments worker 1138
  15.131959057 log       worker idalloc.dev/assignment 
  15.131959057 request   idalloc-controller-0#1 patch deployments worker 200 false
  15.154569929 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="9ce03026-4d4c-4aef-ae22-8b08c8cc0717"
  15.160270857 event     idalloc-controller-0#1 deployments MODIFIED worker
  15.160270858 event     idalloc-controller-0#1 deployments MODIFIED worker
  15.163970517 request   idalloc-controller-0#1 patch deployments worker 422 false
  15.177698760 request   idalloc-controller-0#1 get deployments worker 200 false
  15.186963921 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  15.187800327 request   idalloc-controller-0#1 get deployments worker 200 false
  15.191130160 request   idalloc-controller-0#1 patch deployments worker 200 false
  15.197412970 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="b666785d-ff2c-41db-af2e-e039d9fa20ee"
  15.215999936 reconcile deployments/worker
  15.217579766 stored    deployments worker 1139
  15.217579766 log       worker idalloc.dev/assignment {}
  15.252843720 request   idalloc-controller-0#1 patch deployments worker 422 false
  15.279711541 request   idalloc-controller-0#1 get deployments worker 200 false
  15.285815131 reconcile deployments/worker
  15.286335504 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  15.336563196 request   idalloc-controller-0#1 get deployments worker 200 false
  15.350215710 stored    deployments worker 1140
  15.350215710 log       worker idalloc.dev/assignment 
  15.350215710 request   idalloc-controller-0#1 patch deployments worker 200 false
  15.355964190 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="aa85a159-3367-4f9f-a040-b416a7d1c0cb"
  15.394655506 reconcile deployments/worker
  15.400618843 stored    deployments worker 1141
  15.400618843 log       worker idalloc.dev/assignment {}
  15.412931016 request   idalloc-controller-0#1 patch deployments worker 422 false
  15.427921973 request   idalloc-controller-0#1 get deployments worker 200 false
  15.438381663 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  15.476261939 request   idalloc-controller-0#1 get deployments worker 200 false
  15.483346518 stored    deployments worker 1142
  15.483346518 log       worker idalloc.dev/assignment 
  15.483346518 request   idalloc-controller-0#1 patch deployments worker 200 false
  15.493797643 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="09cb744f-1a98-4b53-9b60-056d220b3a70"
  15.544859107 request   idalloc-controller-0#1 patch deployments worker 422 false
  15.552617956 request   idalloc-controller-0#1 get deployments worker 200 false
  15.553880984 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  15.560408872 stored    deployments worker 1143
  15.560408872 log       worker idalloc.dev/assignment {}
  15.601367195 request   idalloc-controller-0#1 get deployments worker 200 false
  15.605609766 stored    deployments worker 1144
  15.605609766 log       worker idalloc.dev/assignment 
  15.605609766 request   idalloc-controller-0#1 patch deployments worker 200 false
  15.606743596 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="4c553b3b-7d53-45d4-a05a-dff7cb6070a7"
  15.665451974 request   idalloc-controller-0#1 patch deployments worker 422 false
  15.673222922 reconcile deployments/worker
  15.674022943 request   idalloc-controller-0#1 get deployments worker 200 false
  15.680698145 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  15.697670947 stored    deployments worker 1145
  15.697670947 log       worker idalloc.dev/assignment {}
  15.704038179 event     idalloc-controller-0#1 deployments MODIFIED worker
  15.704038180 event     idalloc-controller-0#1 deployments MODIFIED worker
  15.704038181 event     idalloc-controller-0#1 deployments MODIFIED worker
  15.704038182 event     idalloc-controller-0#1 deployments MODIFIED worker
  15.704038183 event     idalloc-controller-0#1 deployments MODIFIED worker
  15.709324523 request   idalloc-controller-0#1 get deployments worker 200 false
  15.713323881 event     idalloc-controller-0#1 deployments MODIFIED worker
  15.713323882 event     idalloc-controller-0#1 deployments MODIFIED worker
  15.719093225 stored    deployments worker 1146
  15.719093225 log       worker idalloc.dev/assignment 
  15.719093225 request   idalloc-controller-0#1 patch deployments worker 200 false
  15.719620173 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="507f0538-d3f6-4127-b3c7-7b6c606088e3"
  15.719893693 request   idalloc-controller-0#1 patch deployments worker 422 false
  15.726007261 request   idalloc-controller-0#1 get deployments worker 200 false
  15.731701365 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  15.750522098 stored    deployments worker 1147
  15.750522098 log       worker idalloc.dev/assignment {}
  15.795537692 request   idalloc-controller-0#1 get deployments worker 200 false
  15.808174668 stored    deployments worker 1148
  15.808174668 log       worker idalloc.dev/assignment 
  15.808174668 request   idalloc-controller-0#1 patch deployments worker 200 false
  15.812218419 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="f4305e7e-f427-46f4-809d-4bbc837926a5"
  15.845428632 reconcile deployments/worker
  15.846899168 stored    deployments worker 1149
  15.846899168 log       worker idalloc.dev/assignment {}
  15.864853407 request   idalloc-controller-0#1 patch deployments worker 422 false
  15.883404307 request   idalloc-controller-0#1 get deployments worker 200 false
  15.887184248 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  15.937138897 request   idalloc-controller-0#1 get deployments worker 200 false
  15.951964305 reconcile deployments/worker
  15.955497866 stored    deployments worker 1150
  15.955497866 log       worker idalloc.dev/assignment 
  15.955497866 request   idalloc-controller-0#1 patch deployments worker 200 false
  15.956179964 stored    deployments worker 1151
  15.956179964 log       worker idalloc.dev/assignment {}
  15.961463793 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="67d1be94-e177-4aab-b15f-4b12f70f0d8d"
  16.019417128 request   idalloc-controller-0#1 patch deployments worker 422 false
  16.044278797 request   idalloc-controller-0#1 get deployments worker 200 false
  16.047626466 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  16.065599536 reconcile deployments/worker
  16.084823596 request   idalloc-controller-0#1 get deployments worker 200 false
  16.095578104 stored    deployments worker 1152
  16.095578104 log       worker idalloc.dev/assignment 
  16.095578104 request   idalloc-controller-0#1 patch deployments worker 200 false
  16.096477534 stored    deployments worker 1153
  16.096477534 log       worker idalloc.dev/assignment {}
  16.096572358 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.096572359 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.096572360 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.105287720 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.105287721 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.105287722 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.105287723 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.109490303 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="13a0e683-2e5e-4ac7-af6a-7b7b9b65692b"
  16.116901344 request   idalloc-controller-0#1 patch deployments worker 422 false
  16.135496831 request   idalloc-controller-0#1 get deployments worker 200 false
  16.138238962 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  16.196562962 request   idalloc-controller-0#1 get deployments worker 200 false
  16.207302489 stored    deployments worker 1154
  16.207302489 log       worker idalloc.dev/assignment 
  16.207302489 request   idalloc-controller-0#1 patch deployments worker 200 false
  16.209685634 stored    deployments worker 1155
  16.209685634 log       worker idalloc.dev/assignment {}
  16.217900353 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="9c75b8fe-13e7-4798-9e15-bd6f2d838701"
  16.279734212 request   idalloc-controller-0#1 patch deployments worker 422 false
  16.313155493 request   idalloc-controller-0#1 get deployments worker 200 false
  16.313537473 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  16.361289927 reconcile deployments/worker
  16.365913800 request   idalloc-controller-0#1 get deployments worker 200 false
  16.372728820 stored    deployments worker 1156
  16.372728820 log       worker idalloc.dev/assignment 
  16.372728820 request   idalloc-controller-0#1 patch deployments worker 200 false
  16.374292550 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="24c63daa-5276-4a98-b937-506ee3505923"
  16.381823781 stored    deployments worker 1157
  16.381823781 log       worker idalloc.dev/assignment {}
  16.425846382 request   idalloc-controller-0#1 patch deployments worker 422 false
  16.432059833 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.432059834 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.432059835 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.432059836 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.437808376 request   idalloc-controller-0#1 get deployments worker 200 false
  16.447168548 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  16.455221270 request   idalloc-controller-0#1 get deployments worker 200 false
  16.457974087 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.467238520 stored    deployments worker 1158
  16.467238520 log       worker idalloc.dev/assignment 
  16.467238520 request   idalloc-controller-0#1 patch deployments worker 200 false
  16.473824034 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="f44bd9a1-f3cc-4cb2-a070-8751fdc0f2e9"
  16.483421191 request   idalloc-controller-0#1 patch deployments worker 422 false
  16.484018410 stored    deployments worker 1159
  16.484018410 log       worker idalloc.dev/assignment {}
  16.491469243 request   idalloc-controller-0#1 get deployments worker 200 false
  16.510426415 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  16.538760406 reconcile deployments/worker
  16.549932169 request   idalloc-controller-0#1 get deployments worker 200 false
  16.560438364 stored    deployments worker 1160
  16.560438364 log       worker idalloc.dev/assignment 
  16.560438364 request   idalloc-controller-0#1 patch deployments worker 200 false
  16.562122609 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="7a869164-690f-477a-bf25-699a9e0545fb"
  16.574961241 stored    deployments worker 1161
  16.574961241 log       worker idalloc.dev/assignment {}
  16.612406444 request   idalloc-controller-0#1 patch deployments worker 422 false
  16.617522587 reconcile deployments/worker
  16.638425456 request   idalloc-controller-0#1 get deployments worker 200 false
  16.646389315 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  16.700581138 request   idalloc-controller-0#1 get deployments worker 200 false
  16.710332059 stored    deployments worker 1162
  16.710332059 log       worker idalloc.dev/assignment 
  16.710332059 request   idalloc-controller-0#1 patch deployments worker 200 false
  16.710497233 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="21858f1f-d7e8-4bea-b432-6f2c08426d6d"
  16.725478901 stored    deployments worker 1163
  16.725478901 log       worker idalloc.dev/assignment {}
  16.760606765 request   idalloc-controller-0#1 patch deployments worker 422 false
  16.774577475 reconcile deployments/worker
  16.775642871 request   idalloc-controller-0#1 get deployments worker 200 false
  16.776767851 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.776767852 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.779918924 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  16.784555259 request   idalloc-controller-0#1 get deployments worker 200 false
  16.794111796 stored    deployments worker 1164
  16.794111796 log       worker idalloc.dev/assignment 
  16.794111796 request   idalloc-controller-0#1 patch deployments worker 200 false
  16.794443779 reconcile deployments/worker
  16.811273906 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="4dfc3863-2757-4e7a-9d44-9542458680e6"
  16.819439220 stored    deployments worker 1165
  16.819439220 log       worker idalloc.dev/assignment {}
  16.867228264 request   idalloc-controller-0#1 patch deployments worker 422 false
  16.874830585 request   idalloc-controller-0#1 get deployments worker 200 false
  16.875694980 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  16.916281281 request   idalloc-controller-0#1 get deployments worker 200 false
  16.924265857 reconcile deployments/worker
  16.953250389 stored    deployments worker 1166
  16.953250389 log       worker idalloc.dev/assignment 
  16.953250389 request   idalloc-controller-0#1 patch deployments worker 200 false
  16.960572667 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="a7f3b51d-3911-4d67-89d8-8358f2a68bea"
  16.996235634 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.996235635 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.996235636 event     idalloc-controller-0#1 deployments MODIFIED worker
  16.997940653 request   idalloc-controller-0#1 patch deployments worker 422 false
  17.005949443 stored    deployments worker 1167
  17.005949443 log       worker idalloc.dev/assignment {}
  17.021964365 request   idalloc-controller-0#1 get deployments worker 200 false
  17.027468395 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  17.029388970 request   idalloc-controller-0#1 get deployments worker 200 false
  17.060502981 stored    deployments worker 1168
  17.060502981 log       worker idalloc.dev/assignment 
  17.060502981 request   idalloc-controller-0#1 patch deployments worker 200 false
  17.070613421 stored    deployments worker 1169
  17.070613421 log       worker idalloc.dev/assignment {}
  17.078327253 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="cc936c07-7543-44ce-abf2-b0b4ae00a46a"
  17.097414283 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.097414284 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.108182238 request   idalloc-controller-0#1 patch deployments worker 422 false
  17.141541776 request   idalloc-controller-0#1 get deployments worker 200 false
  17.157739746 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  17.158565902 request   idalloc-controller-0#1 get deployments worker 200 false
  17.187495619 stored    deployments worker 1170
  17.187495619 log       worker idalloc.dev/assignment 
  17.187495619 request   idalloc-controller-0#1 patch deployments worker 200 false
  17.197363719 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="acbaddc7-2e4c-4707-8654-192052597a05"
  17.231820823 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.231820824 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.231820825 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.231820826 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.231820827 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.234066741 reconcile deployments/worker
  17.239446374 request   idalloc-controller-0#1 patch deployments worker 422 false
  17.284039582 request   idalloc-controller-0#1 get deployments worker 200 false
  17.289708539 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  17.292987745 request   idalloc-controller-0#1 get deployments worker 200 false
  17.295990648 request   idalloc-controller-0#1 patch deployments worker 200 false
  17.302493703 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="3124a0c6-f574-4530-9ef3-2036007aab47"
  17.312907745 stored    deployments worker 1171
  17.312907745 log       worker idalloc.dev/assignment {}
  17.373185248 request   idalloc-controller-0#1 patch deployments worker 422 false
  17.400869198 request   idalloc-controller-0#1 get deployments worker 200 false
  17.415224441 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  17.467150632 request   idalloc-controller-0#1 get deployments worker 200 false
  17.488858584 stored    deployments worker 1172
  17.488858584 log       worker idalloc.dev/assignment 
  17.488858584 request   idalloc-controller-0#1 patch deployments worker 200 false
  17.496930793 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="6e5d5e38-5993-4136-a4eb-6fd25ef3c93a"
  17.532665207 stored    deployments worker 1173
  17.532665207 log       worker idalloc.dev/assignment {}
  17.544530795 reconcile deployments/worker
  17.547441371 request   idalloc-controller-0#1 patch deployments worker 422 false
  17.556347185 request   idalloc-controller-0#1 get deployments worker 200 false
  17.560203132 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  17.593601352 request   idalloc-controller-0#1 get deployments worker 200 false
  17.601686112 stored    deployments worker 1174
  17.601686112 log       worker idalloc.dev/assignment 
  17.601686112 request   idalloc-controller-0#1 patch deployments worker 200 false
  17.602519601 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="b09ded64-d4bf-4726-b148-7ab615a535ad"
  17.603388191 reconcile deployments/worker
  17.613133904 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.613133905 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.614727848 request   idalloc-controller-0#1 patch deployments worker 422 false
  17.625773983 request   idalloc-controller-0#1 get deployments worker 200 false
  17.627839131 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  17.642397180 request   idalloc-controller-0#1 get deployments worker 200 false
  17.644312921 stored    deployments worker 1175
  17.644312921 log       worker idalloc.dev/assignment {}
  17.649954286 request   idalloc-controller-0#1 patch deployments worker 422 false
  17.655575479 request   idalloc-controller-0#1 get deployments worker 200 false
  17.667345854 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  17.690732344 reconcile deployments/worker
  17.717756268 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.717756269 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.717756270 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.717756271 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.718812668 request   idalloc-controller-0#1 get deployments worker 200 false
  17.724577586 stored    deployments worker 1176
  17.724577586 log       worker idalloc.dev/assignment 
  17.724577586 request   idalloc-controller-0#1 patch deployments worker 200 false
  17.729700721 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="85004aa1-bccd-47ea-be37-73b8373876b2"
  17.730773568 request   idalloc-controller-0#1 patch deployments worker 422 false
  17.735733484 request   idalloc-controller-0#1 get deployments worker 200 false
  17.742764196 stored    deployments worker 1177
  17.742764196 log       worker idalloc.dev/assignment {}
  17.744329352 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  17.748878253 reconcile deployments/worker
  17.785900961 request   idalloc-controller-0#1 get deployments worker 200 false
  17.804850809 stored    deployments worker 1178
  17.804850809 log       worker idalloc.dev/assignment 
  17.804850809 request   idalloc-controller-0#1 patch deployments worker 200 false
  17.806173381 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="252f4eeb-b1a6-4ade-94ef-1a560990024c"
  17.815248582 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.815248583 event     idalloc-controller-0#1 deployments MODIFIED worker
  17.823245141 request   idalloc-controller-0#1 patch deployments worker 422 false
  17.833389760 stored    deployments worker 1179
  17.833389760 log       worker idalloc.dev/assignment {}
  17.839276838 request   idalloc-controller-0#1 get deployments worker 200 false
  17.850299108 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  17.856376911 request   idalloc-controller-0#1 get deployments worker 200 false
  17.867854308 stored    deployments worker 1180
  17.867854308 log       worker idalloc.dev/assignment 
  17.867854308 request   idalloc-controller-0#1 patch deployments worker 200 false
  17.868347078 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="86dd16e2-3131-46de-9251-ffb2ccb307f0"
  17.876150286 stored    deployments worker 1181
  17.876150286 log       worker idalloc.dev/assignment {}
  17.918526963 request   idalloc-controller-0#1 patch deployments worker 422 false
  17.925610233 request   idalloc-controller-0#1 get deployments worker 200 false
  17.928085169 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  17.956686672 reconcile deployments/worker
  17.974895771 request   idalloc-controller-0#1 get deployments worker 200 false
  17.983695251 stored    deployments worker 1182
  17.983695251 log       worker idalloc.dev/assignment 
  17.983695251 request   idalloc-controller-0#1 patch deployments worker 200 false
  17.984362522 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="e416ea2d-5ad3-40ab-b854-dda1335cfd8d"
  17.989364249 stored    deployments worker 1183
  17.989364249 log       worker idalloc.dev/assignment {}
  18.034978963 request   idalloc-controller-0#1 patch deployments worker 422 false
  18.038534230 reconcile deployments/worker
  18.042445295 request   idalloc-controller-0#1 get deployments worker 200 false
  18.048553345 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.048553346 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.049329191 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  18.054664636 request   idalloc-controller-0#1 get deployments worker 200 false
  18.060423443 stored    deployments worker 1184
  18.060423443 log       worker idalloc.dev/assignment 
  18.060423443 request   idalloc-controller-0#1 patch deployments worker 200 false
  18.060916866 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="77afb236-73c6-4338-a379-87169acdc136"
  18.118374041 request   idalloc-controller-0#1 patch deployments worker 422 false
  18.125344434 request   idalloc-controller-0#1 get deployments worker 200 false
  18.131202700 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  18.134169948 stored    deployments worker 1185
  18.134169948 log       worker idalloc.dev/assignment {}
  18.165262465 request   idalloc-controller-0#1 get deployments worker 200 false
  18.188319185 stored    deployments worker 1186
  18.188319185 log       worker idalloc.dev/assignment 
  18.188319185 request   idalloc-controller-0#1 patch deployments worker 200 false
  18.188891399 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="d07f903b-0566-4d2b-95a0-cf4d805b85ef"
  18.194665664 reconcile deployments/worker
  18.201463708 stored    deployments worker 1187
  18.201463708 log       worker idalloc.dev/assignment {}
  18.246914104 request   idalloc-controller-0#1 patch deployments worker 422 false
  18.262876944 request   idalloc-controller-0#1 get deployments worker 200 false
  18.269738284 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  18.302619219 reconcile deployments/worker
  18.318178507 request   idalloc-controller-0#1 get deployments worker 200 false
  18.328292155 stored    deployments worker 1188
  18.328292155 log       worker idalloc.dev/assignment 
  18.328292155 request   idalloc-controller-0#1 patch deployments worker 200 false
  18.330799677 stored    deployments worker 1189
  18.330799677 log       worker idalloc.dev/assignment {}
  18.332780920 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="e612452c-aac1-48be-ae6f-efac2ee0db5b"
  18.384501480 request   idalloc-controller-0#1 patch deployments worker 422 false
  18.403416485 request   idalloc-controller-0#1 get deployments worker 200 false
  18.412741501 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  18.459106507 request   idalloc-controller-0#1 get deployments worker 200 false
  18.464279770 stored    deployments worker 1190
  18.464279770 log       worker idalloc.dev/assignment 
  18.464279770 request   idalloc-controller-0#1 patch deployments worker 200 false
  18.470364660 reconcile deployments/worker
  18.473631877 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="c8fcc4d4-ee27-4e8a-9648-e344ba7701b3"
  18.509114445 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.509114446 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.509114447 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.509114448 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.509114449 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.509114450 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.509114451 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.509114452 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.509114453 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.524214928 request   idalloc-controller-0#1 patch deployments worker 422 false
  18.528298252 request   idalloc-controller-0#1 get deployments worker 200 false
  18.532722185 stored    deployments worker 1191
  18.532722185 log       worker idalloc.dev/assignment {}
  18.535681904 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  18.566068747 request   idalloc-controller-0#1 get deployments worker 200 false
  18.577989781 stored    deployments worker 1192
  18.577989781 log       worker idalloc.dev/assignment 
  18.577989781 request   idalloc-controller-0#1 patch deployments worker 200 false
  18.582775437 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="e510807c-2ca7-4d40-bd6b-b0cc43bd34ac"
  18.584184295 stored    deployments worker 1193
  18.584184295 log       worker idalloc.dev/assignment {}
  18.638229793 request   idalloc-controller-0#1 patch deployments worker 422 false
  18.649944918 request   idalloc-controller-0#1 get deployments worker 200 false
  18.656018307 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  18.694591723 request   idalloc-controller-0#1 get deployments worker 200 false
  18.701888736 stored    deployments worker 1194
  18.701888736 log       worker idalloc.dev/assignment 
  18.701888736 request   idalloc-controller-0#1 patch deployments worker 200 false
  18.703790167 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="d3f830db-1264-449c-b258-8d972332a37f"
  18.715814522 stored    deployments worker 1195
  18.715814522 log       worker idalloc.dev/assignment {}
  18.737088516 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.737088517 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.737088518 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.737088519 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.737088520 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.737088521 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.751304770 request   idalloc-controller-0#1 patch deployments worker 422 false
  18.759217692 reconcile deployments/worker
  18.784839704 request   idalloc-controller-0#1 get deployments worker 200 false
  18.791424999 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  18.791807426 request   idalloc-controller-0#1 get deployments worker 200 false
  18.796477168 stored    deployments worker 1196
  18.796477168 log       worker idalloc.dev/assignment 
  18.796477168 request   idalloc-controller-0#1 patch deployments worker 200 false
  18.802065183 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="4dfedfc0-e5b0-4c19-9fa6-35ac57413952"
  18.857334379 stored    deployments worker 1197
  18.857334379 log       worker idalloc.dev/assignment {}
  18.858583555 request   idalloc-controller-0#1 patch deployments worker 422 false
  18.872094414 request   idalloc-controller-0#1 get deployments worker 200 false
  18.876484468 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  18.899920063 reconcile deployments/worker
  18.939075158 request   idalloc-controller-0#1 get deployments worker 200 false
  18.950522091 stored    deployments worker 1198
  18.950522091 log       worker idalloc.dev/assignment 
  18.950522091 request   idalloc-controller-0#1 patch deployments worker 200 false
  18.953633963 reconcile deployments/worker
  18.971005445 stored    deployments worker 1199
  18.971005445 log       worker idalloc.dev/assignment {}
  18.971026537 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="b0485dca-82d8-45bf-b0be-14386148ba59"
  18.986563549 event     idalloc-controller-0#1 deployments MODIFIED worker
  18.989847430 request   idalloc-controller-0#1 patch deployments worker 422 false
  19.003956237 request   idalloc-controller-0#1 get deployments worker 200 false
  19.005387421 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  19.077273538 request   idalloc-controller-0#1 get deployments worker 200 false
  19.108104179 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.108104180 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.108104181 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.108104182 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.110661511 stored    deployments worker 1200
  19.110661511 log       worker idalloc.dev/assignment 
  19.110661511 request   idalloc-controller-0#1 patch deployments worker 200 false
  19.114526671 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="86089267-2acc-434d-951e-a0728522de47"
  19.115358170 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.118120293 request   idalloc-controller-0#1 patch deployments worker 422 false
  19.124266500 request   idalloc-controller-0#1 get deployments worker 200 false
  19.128560728 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  19.130988847 request   idalloc-controller-0#1 get deployments worker 200 false
  19.150306159 request   idalloc-controller-0#1 patch deployments worker 200 false
  19.151641482 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="4d8d2a87-fed4-4ece-8ac1-a89be34a3ea1"
  19.211288545 request   idalloc-controller-0#1 patch deployments worker 200 false
  19.222492071 stored    deployments worker 1201
  19.222492071 log       worker idalloc.dev/assignment {}
  19.222923519 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="f00dcd59-ce93-439c-8276-349682a7f688"
  19.325299080 request   idalloc-controller-0#1 patch deployments worker 422 false
  19.338589979 request   idalloc-controller-0#1 get deployments worker 200 false
  19.343452606 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  19.363684514 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.363684515 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.363787445 request   idalloc-controller-0#1 get deployments worker 200 false
  19.387834493 stored    deployments worker 1202
  19.387834493 log       worker idalloc.dev/assignment 
  19.387834493 request   idalloc-controller-0#1 patch deployments worker 200 false
  19.393271908 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="eb9de744-4b38-456c-b371-8f88d7ccf455"
  19.396691217 request   idalloc-controller-0#1 patch deployments worker 422 false
  19.401563125 request   idalloc-controller-0#1 get deployments worker 200 false
  19.407949790 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  19.445383711 request   idalloc-controller-0#1 get deployments worker 200 false
  19.446271222 request   idalloc-controller-0#1 patch deployments worker 200 false
  19.448629635 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="9007952c-0bf7-425b-9eba-3b46821535b4"
  19.451865789 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.460104698 request   idalloc-controller-0#1 patch deployments worker 200 false
  19.463701116 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="ea5a728c-a629-4e8f-b938-d516ee6b46e7"
  19.466725749 reconcile deployments/worker
  19.467750691 stored    deployments worker 1203
  19.467750691 log       worker idalloc.dev/assignment {}
  19.573006218 request   idalloc-controller-0#1 patch deployments worker 422 false
  19.593069697 request   idalloc-controller-0#1 get deployments worker 200 false
  19.594588683 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  19.627209327 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.630655492 request   idalloc-controller-0#1 get deployments worker 200 false
  19.635321039 stored    deployments worker 1204
  19.635321039 log       worker idalloc.dev/assignment 
  19.635321039 request   idalloc-controller-0#1 patch deployments worker 200 false
  19.642172996 stored    deployments worker 1205
  19.642172996 log       worker idalloc.dev/assignment {}
  19.644258805 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="8f2f1c0d-6804-4cea-8ffb-507e70969b57"
  19.666856891 reconcile deployments/worker
  19.675535267 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.681081440 request   idalloc-controller-0#1 get deployments worker 200 false
  19.688030505 stored    deployments worker 1206
  19.688030505 log       worker idalloc.dev/assignment 
  19.688030505 request   idalloc-controller-0#1 patch deployments worker 200 false
  19.688734604 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="b8bab874-df40-41b1-928e-ba8a1a8b0031"
  19.707008169 stored    deployments worker 1207
  19.707008169 log       worker idalloc.dev/assignment {}
  19.795598928 request   idalloc-controller-0#1 patch deployments worker 422 false
  19.828735475 reconcile deployments/worker
  19.848955066 request   idalloc-controller-0#1 get deployments worker 200 false
  19.849498966 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  19.870278752 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.874708384 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.874708385 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.877644468 request   idalloc-controller-0#1 get deployments worker 200 false
  19.893205689 stored    deployments worker 1208
  19.893205689 log       worker idalloc.dev/assignment 
  19.893205689 request   idalloc-controller-0#1 patch deployments worker 200 false
  19.901079482 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="40566ad0-4d70-4a7f-bcc0-285bc484ee49"
  19.901860746 stored    deployments worker 1209
  19.901860746 log       worker idalloc.dev/assignment {}
  19.916190358 request   idalloc-controller-0#1 patch deployments worker 422 false
  19.921201730 request   idalloc-controller-0#1 get deployments worker 200 false
  19.923511134 reconcile deployments/worker
  19.929604969 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  19.958410684 request   idalloc-controller-0#1 get deployments worker 200 false
  19.972235465 stored    deployments worker 1210
  19.972235465 log       worker idalloc.dev/assignment 
  19.972235465 request   idalloc-controller-0#1 patch deployments worker 200 false
  19.976355737 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="b36497a0-88ee-4bda-bf1e-639240132532"
  19.985489638 event     idalloc-controller-0#1 deployments MODIFIED worker
  19.990803088 stored    deployments worker 1211
  19.990803088 log       worker idalloc.dev/assignment {}
  19.991057843 request   idalloc-controller-0#1 patch deployments worker 422 false
  19.995455906 request   idalloc-controller-0#1 get deployments worker 200 false
  20.002487774 reconcile deployments/worker
  20.005708619 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  20.057077714 request   idalloc-controller-0#1 get deployments worker 200 false
  20.062880922 stored    deployments worker 1212
  20.062880922 log       worker idalloc.dev/assignment 
  20.062880922 request   idalloc-controller-0#1 patch deployments worker 200 false
  20.064111043 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="99cd556e-2e1c-4c32-9060-f76d42710a99"
  20.072576584 stored    deployments worker 1213
  20.072576584 log       worker idalloc.dev/assignment {}
  20.099588998 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.109711943 request   idalloc-controller-0#1 patch deployments worker 422 false
  20.129273004 request   idalloc-controller-0#1 get deployments worker 200 false
  20.138361730 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.138361731 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.143122045 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  20.149126242 request   idalloc-controller-0#1 get deployments worker 200 false
  20.159301785 stored    deployments worker 1214
  20.159301785 log       worker idalloc.dev/assignment 
  20.159301785 request   idalloc-controller-0#1 patch deployments worker 200 false
  20.160411134 stored    deployments worker 1215
  20.160411134 log       worker idalloc.dev/assignment {}
  20.165395212 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="800f1a69-e579-4a66-a409-81ae539c05f3"
  20.204886333 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.205227367 request   idalloc-controller-0#1 patch deployments worker 422 false
  20.214725300 request   idalloc-controller-0#1 get deployments worker 200 false
  20.214849847 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  20.256861065 request   idalloc-controller-0#1 get deployments worker 200 false
  20.259024667 stored    deployments worker 1216
  20.259024667 log       worker idalloc.dev/assignment 
  20.259024667 request   idalloc-controller-0#1 patch deployments worker 200 false
  20.268684613 stored    deployments worker 1217
  20.268684613 log       worker idalloc.dev/assignment {}
  20.291055465 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="663bce21-752a-4054-9a2b-be1c766c3865"
  20.352515771 request   idalloc-controller-0#1 patch deployments worker 422 false
  20.372302616 request   idalloc-controller-0#1 get deployments worker 200 false
  20.375004052 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  20.395107728 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.395107729 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.395107730 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.395107731 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.395107732 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.401639061 reconcile deployments/worker
  20.414058514 request   idalloc-controller-0#1 get deployments worker 200 false
  20.440502350 stored    deployments worker 1218
  20.440502350 log       worker idalloc.dev/assignment 
  20.440502350 request   idalloc-controller-0#1 patch deployments worker 200 false
  20.444163347 stored    deployments worker 1219
  20.444163347 log       worker idalloc.dev/assignment {}
  20.451362999 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="2b88d8f6-b577-4e99-a677-7304a91c9f0c"
  20.460729041 request   idalloc-controller-0#1 patch deployments worker 422 false
  20.478441910 request   idalloc-controller-0#1 get deployments worker 200 false
  20.478760543 reconcile deployments/worker
  20.485947355 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  20.524526567 request   idalloc-controller-0#1 get deployments worker 200 false
  20.540595298 stored    deployments worker 1220
  20.540595298 log       worker idalloc.dev/assignment 
  20.540595298 request   idalloc-controller-0#1 patch deployments worker 200 false
  20.540988391 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="ddd56a4e-a286-4375-aa1b-4bad5ca20f06"
  20.577606107 stored    deployments worker 1221
  20.577606107 log       worker idalloc.dev/assignment {}
  20.587292639 reconcile deployments/worker
  20.593337183 request   idalloc-controller-0#1 patch deployments worker 422 false
  20.601299552 request   idalloc-controller-0#1 get deployments worker 200 false
  20.604871495 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  20.645581212 request   idalloc-controller-0#1 get deployments worker 200 false
  20.652969672 stored    deployments worker 1222
  20.652969672 log       worker idalloc.dev/assignment 
  20.652969672 request   idalloc-controller-0#1 patch deployments worker 200 false
  20.654833750 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="17fbbbe5-3e0c-461a-b29d-c825b4f4f4eb"
  20.660979187 stored    deployments worker 1223
  20.660979187 log       worker idalloc.dev/assignment {}
  20.666389591 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.666389592 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.666389593 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.667990877 request   idalloc-controller-0#1 patch deployments worker 422 false
  20.685933091 request   idalloc-controller-0#1 get deployments worker 200 false
  20.686722109 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  20.688792778 request   idalloc-controller-0#1 get deployments worker 200 false
  20.695190902 reconcile deployments/worker
  20.699699561 stored    deployments worker 1224
  20.699699561 log       worker idalloc.dev/assignment 
  20.699699561 request   idalloc-controller-0#1 patch deployments worker 200 false
  20.704269383 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="57495c6b-08ea-435b-a7f7-86126167de79"
  20.737187256 stored    deployments worker 1225
  20.737187256 log       worker idalloc.dev/assignment {}
  20.741757032 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.741757033 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.741757034 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.741757035 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.743312607 request   idalloc-controller-0#1 patch deployments worker 422 false
  20.767907694 request   idalloc-controller-0#1 get deployments worker 200 false
  20.772242982 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  20.785255442 request   idalloc-controller-0#1 get deployments worker 200 false
  20.804958790 stored    deployments worker 1226
  20.804958790 log       worker idalloc.dev/assignment 
  20.804958790 request   idalloc-controller-0#1 patch deployments worker 200 false
  20.813595424 stored    deployments worker 1227
  20.813595424 log       worker idalloc.dev/assignment {}
  20.817528094 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="0d3a07f4-8020-4ab1-8134-ebd9c7a8723f"
  20.831124407 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.832985422 request   idalloc-controller-0#1 patch deployments worker 422 false
  20.844304611 request   idalloc-controller-0#1 get deployments worker 200 false
  20.848316823 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  20.900361397 request   idalloc-controller-0#1 get deployments worker 200 false
  20.904166267 stored    deployments worker 1228
  20.904166267 log       worker idalloc.dev/assignment 
  20.904166267 request   idalloc-controller-0#1 patch deployments worker 200 false
  20.915957067 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="773054f2-4440-4bdd-acf4-aafae67f0be1"
  20.935244053 reconcile deployments/worker
  20.955279227 stored    deployments worker 1229
  20.955279227 log       worker idalloc.dev/assignment {}
  20.970689323 request   idalloc-controller-0#1 patch deployments worker 422 false
  20.971800215 request   idalloc-controller-0#1 get deployments worker 200 false
  20.980844134 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  20.995781405 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.995781406 event     idalloc-controller-0#1 deployments MODIFIED worker
  20.995781407 event     idalloc-controller-0#1 deployments MODIFIED worker
  21.010574705 request   idalloc-controller-0#1 get deployments worker 200 false
  21.019404922 stored    deployments worker 1230
  21.019404922 log       worker idalloc.dev/assignment 
  21.019404922 request   idalloc-controller-0#1 patch deployments worker 200 false
  21.022758903 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="3c3ed72c-9f9c-465e-be86-6e43e12e3557"
  21.025484188 request   idalloc-controller-0#1 patch deployments worker 422 false
  21.030936976 event     idalloc-controller-0#1 deployments MODIFIED worker
  21.035767725 stored    deployments worker 1231
  21.035767725 log       worker idalloc.dev/assignment {}
  21.051782360 request   idalloc-controller-0#1 get deployments worker 200 false
  21.061021451 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  21.062509185 request   idalloc-controller-0#1 get deployments worker 200 false
  21.067516739 event     idalloc-controller-0#1 deployments MODIFIED worker
  21.073812234 stored    deployments worker 1232
  21.073812234 log       worker idalloc.dev/assignment 
  21.073812234 request   idalloc-controller-0#1 patch deployments worker 200 false
  21.079724377 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="11b92575-e52a-43a1-8a1e-f4d03248cc6f"
  21.085467989 request   idalloc-controller-0#1 patch deployments worker 422 false
  21.100004412 request   idalloc-controller-0#1 get deployments worker 200 false
  21.101912399 reconcile deployments/worker
  21.112075380 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  21.152598799 request   idalloc-controller-0#1 get deployments worker 200 false
  21.152913993 event     idalloc-controller-0#1 deployments MODIFIED worker
  21.152913994 event     idalloc-controller-0#1 deployments MODIFIED worker
  21.160850735 request   idalloc-controller-0#1 patch deployments worker 200 false
  21.161807240 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="eff1f3a0-e3b6-4a4f-89a1-6222997438aa"
  21.167436535 request   idalloc-controller-0#1 patch deployments worker 200 false
  21.175861231 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="d44fa7f2-7048-410b-b5c0-fbb09da5647a"
  21.239438591 stored    deployments worker 1233
  21.239438591 log       worker idalloc.dev/assignment {}
  21.275110863 reconcile deployments/worker
  21.285174008 request   idalloc-controller-0#1 patch deployments worker 422 false
  21.292770961 request   idalloc-controller-0#1 get deployments worker 200 false
  21.298030663 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  21.349243739 request   idalloc-controller-0#1 get deployments worker 200 false
  21.362205590 stored    deployments worker 1234
  21.362205590 log       worker idalloc.dev/assignment 
  21.362205590 request   idalloc-controller-0#1 patch deployments worker 200 false
  21.381019309 stored    deployments worker 1235
  21.381019309 log       worker idalloc.dev/assignment {}
  21.395588078 event     idalloc-controller-0#1 deployments MODIFIED worker
  21.395588079 event     idalloc-controller-0#1 deployments MODIFIED worker
  21.395895878 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="1fc27245-7445-4b61-9ac3-e47d9f4a71dd"
  21.401478202 request   idalloc-controller-0#1 get deployments worker 200 false
  21.406242759 stored    deployments worker 1236
  21.406242759 log       worker idalloc.dev/assignment 
  21.406242759 request   idalloc-controller-0#1 patch deployments worker 200 false
  21.406906278 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="896d06bd-0e3c-4027-9c06-318a0328273a"
  21.420685558 stored    deployments worker 1237
  21.420685558 log       worker idalloc.dev/assignment {}
  21.456071952 event     idalloc-controller-0#1 deployments MODIFIED worker
  21.462019867 request   idalloc-controller-0#1 patch deployments worker 422 false
  21.471331523 request   idalloc-controller-0#1 get deployments worker 200 false
  21.475691035 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  21.520700242 request   idalloc-controller-0#1 get deployments worker 200 false
  21.532247673 stored    deployments worker 1238
  21.532247673 log       worker idalloc.dev/assignment 
  21.532247673 request   idalloc-controller-0#1 patch deployments worker 200 false
  21.533810791 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="c498432c-84cc-4706-bf3b-74b27f6d2de4"
  21.557289151 stored    deployments worker 1239
  21.557289151 log       worker idalloc.dev/assignment {}
  21.586461499 reconcile deployments/worker
  21.594793010 request   idalloc-controller-0#1 patch deployments worker 422 false
  21.599566911 request   idalloc-controller-0#1 get deployments worker 200 false
  21.601867876 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  21.648716118 request   idalloc-controller-0#1 get deployments worker 200 false
  21.663618336 stored    deployments worker 1240
  21.663618336 log       worker idalloc.dev/assignment 
  21.663618336 request   idalloc-controller-0#1 patch deployments worker 200 false
  21.664642616 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="bbb44a32-fdd3-4115-9420-deae99a62773"
  21.673509880 event     idalloc-controller-0#1 deployments MODIFIED worker
  21.687335252 request   idalloc-controller-0#1 patch deployments worker 422 false
  21.695499414 request   idalloc-controller-0#1 get deployments worker 200 false
  21.701693822 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  21.714403095 stored    deployments worker 1241
  21.714403095 log       worker idalloc.dev/assignment {}
  21.758020683 request   idalloc-controller-0#1 get deployments worker 200 false
  21.766067675 stored    deployments worker 1242
  21.766067675 log       worker idalloc.dev/assignment 
  21.766067675 request   idalloc-controller-0#1 patch deployments worker 200 false
  21.766451411 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="4699ab21-da4b-4228-9bc4-a21c39eb7114"
  21.818101276 request   idalloc-controller-0#1 patch deployments worker 422 false
  21.833680117 stored    deployments worker 1243
  21.833680117 log       worker idalloc.dev/assignment {}
  21.834951958 request   idalloc-controller-0#1 get deployments worker 200 false
  21.843142609 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  21.897903253 request   idalloc-controller-0#1 get deployments worker 200 false
  21.909195716 stored    deployments worker 1244
  21.909195716 log       worker idalloc.dev/assignment 
  21.909195716 request   idalloc-controller-0#1 patch deployments worker 200 false
  21.922980713 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="e7343999-0a47-4ba6-9ebe-1edfd534975d"
  21.933992602 stored    deployments worker 1245
  21.933992602 log       worker idalloc.dev/assignment {}
  21.973457581 request   idalloc-controller-0#1 patch deployments worker 422 false
  21.980242189 request   idalloc-controller-0#1 get deployments worker 200 false
  21.981912041 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  22.012677272 reconcile deployments/worker
  22.013666179 request   idalloc-controller-0#1 get deployments worker 200 false
  22.027603815 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.027603816 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.027603817 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.027603818 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.027603819 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.027603820 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.029667319 stored    deployments worker 1246
  22.029667319 log       worker idalloc.dev/assignment 
  22.029667319 request   idalloc-controller-0#1 patch deployments worker 200 false
  22.031524638 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="77a3ec5f-5668-45c6-92d8-6aeb6d395483"
  22.035286632 request   idalloc-controller-0#1 patch deployments worker 422 false
  22.053402094 request   idalloc-controller-0#1 get deployments worker 200 false
  22.062527628 reconcile deployments/worker
  22.063068261 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  22.073980190 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.073980191 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.073980192 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.074280272 request   idalloc-controller-0#1 get deployments worker 200 false
  22.083174936 stored    deployments worker 1247
  22.083174936 log       worker idalloc.dev/assignment {}
  22.085906822 request   idalloc-controller-0#1 patch deployments worker 422 false
  22.094567385 request   idalloc-controller-0#1 get deployments worker 200 false
  22.121117751 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  22.136313184 request   idalloc-controller-0#1 get deployments worker 200 false
  22.145737604 reconcile deployments/worker
  22.155535009 stored    deployments worker 1248
  22.155535009 log       worker idalloc.dev/assignment 
  22.155535009 request   idalloc-controller-0#1 patch deployments worker 200 false
  22.159955071 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="fbb66091-dbf8-41cc-840a-0b0bf9e8e747"
  22.160062465 reconcile deployments/worker
  22.193467817 stored    deployments worker 1249
  22.193467817 log       worker idalloc.dev/assignment {}
  22.211752249 request   idalloc-controller-0#1 patch deployments worker 422 false
  22.236367354 request   idalloc-controller-0#1 get deployments worker 200 false
  22.237933674 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  22.288774128 request   idalloc-controller-0#1 get deployments worker 200 false
  22.303767428 stored    deployments worker 1250
  22.303767428 log       worker idalloc.dev/assignment 
  22.303767428 request   idalloc-controller-0#1 patch deployments worker 200 false
  22.313597357 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="bc647046-6621-452e-8a25-feea565614aa"
  22.322731572 stored    deployments worker 1251
  22.322731572 log       worker idalloc.dev/assignment {}
  22.365861458 request   idalloc-controller-0#1 patch deployments worker 422 false
  22.375288193 request   idalloc-controller-0#1 get deployments worker 200 false
  22.376348334 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  22.427366110 request   idalloc-controller-0#1 get deployments worker 200 false
  22.431824043 reconcile deployments/worker
  22.439535715 stored    deployments worker 1252
  22.439535715 log       worker idalloc.dev/assignment 
  22.439535715 request   idalloc-controller-0#1 patch deployments worker 200 false
  22.439828018 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="c00fdd79-ebc8-4c73-9ff7-17f8e0a7d688"
  22.457192705 stored    deployments worker 1253
  22.457192705 log       worker idalloc.dev/assignment {}
  22.486777316 reconcile deployments/worker
  22.512685249 request   idalloc-controller-0#1 patch deployments worker 422 false
  22.520000027 request   idalloc-controller-0#1 get deployments worker 200 false
  22.520944558 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  22.538635371 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.538635372 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.538635373 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.538635374 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.538635375 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.547483243 request   idalloc-controller-0#1 get deployments worker 200 false
  22.573229277 stored    deployments worker 1254
  22.573229277 log       worker idalloc.dev/assignment 
  22.573229277 request   idalloc-controller-0#1 patch deployments worker 200 false
  22.579420868 stored    deployments worker 1255
  22.579420868 log       worker idalloc.dev/assignment {}
  22.610628682 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="c917dcbd-8396-43a3-89ff-f79f11f46cd5"
  22.612173905 request   idalloc-controller-0#1 patch deployments worker 422 false
  22.628298060 request   idalloc-controller-0#1 get deployments worker 200 false
  22.640766909 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  22.657173510 reconcile deployments/worker
  22.666953838 request   idalloc-controller-0#1 get deployments worker 200 false
  22.669736957 stored    deployments worker 1256
  22.669736957 log       worker idalloc.dev/assignment 
  22.669736957 request   idalloc-controller-0#1 patch deployments worker 200 false
  22.682491393 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="ccb642d4-2929-417c-a6b8-8750368c9fc5"
  22.690506213 stored    deployments worker 1257
  22.690506213 log       worker idalloc.dev/assignment {}
  22.733584277 request   idalloc-controller-0#1 patch deployments worker 422 false
  22.738785113 request   idalloc-controller-0#1 get deployments worker 200 false
  22.746000186 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  22.768726724 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.768726725 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.768726726 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.768726727 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.768726728 event     idalloc-controller-0#1 deployments MODIFIED worker
  22.769472805 request   idalloc-controller-0#1 get deployments worker 200 false
  22.775122235 reconcile deployments/worker
  22.789285706 stored    deployments worker 1258
  22.789285706 log       worker idalloc.dev/assignment 
  22.789285706 request   idalloc-controller-0#1 patch deployments worker 200 false
  22.794180052 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="77cb7a28-0258-4cf2-b454-2f335706318b"
  22.794976717 request   idalloc-controller-0#1 patch deployments worker 422 false
  22.798492679 stored    deployments worker 1259
  22.798492679 log       worker idalloc.dev/assignment {}
  22.803584123 request   idalloc-controller-0#1 get deployments worker 200 false
  22.815118991 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  22.853821703 request   idalloc-controller-0#1 get deployments worker 200 false
  22.878434307 reconcile deployments/worker
  22.881565890 stored    deployments worker 1260
  22.881565890 log       worker idalloc.dev/assignment 
  22.881565890 request   idalloc-controller-0#1 patch deployments worker 200 false
  22.882708794 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="a017afd5-04fc-4ea0-8c47-5668b468f3e5"
  22.886075741 reconcile deployments/worker
  22.906572761 stored    deployments worker 1261
  22.906572761 log       worker idalloc.dev/assignment {}
  22.936345679 request   idalloc-controller-0#1 patch deployments worker 422 false
  22.939298643 request   idalloc-controller-0#1 get deployments worker 200 false
  22.950089314 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  22.952476602 reconcile deployments/worker
  23.005887275 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.005887276 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.018550341 request   idalloc-controller-0#1 get deployments worker 200 false
  23.030538971 stored    deployments worker 1262
  23.030538971 log       worker idalloc.dev/assignment 
  23.030538971 request   idalloc-controller-0#1 patch deployments worker 200 false
  23.036846352 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="cd1e2753-f113-495d-b87e-0859fc7c1fce"
  23.038140015 stored    deployments worker 1263
  23.038140015 log       worker idalloc.dev/assignment {}
  23.041553309 request   idalloc-controller-0#1 patch deployments worker 422 false
  23.055568883 request   idalloc-controller-0#1 get deployments worker 200 false
  23.062991048 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  23.069160588 reconcile deployments/worker
  23.107274084 request   idalloc-controller-0#1 get deployments worker 200 false
  23.134695828 stored    deployments worker 1264
  23.134695828 log       worker idalloc.dev/assignment 
  23.134695828 request   idalloc-controller-0#1 patch deployments worker 200 false
  23.139528703 stored    deployments worker 1265
  23.139528703 log       worker idalloc.dev/assignment {}
  23.157627933 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="2a2160f2-18b2-4c67-a279-52b7f3bb075c"
  23.161620702 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.174740336 request   idalloc-controller-0#1 patch deployments worker 422 false
  23.196976274 request   idalloc-controller-0#1 get deployments worker 200 false
  23.205835278 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  23.223753252 reconcile deployments/worker
  23.255857494 request   idalloc-controller-0#1 get deployments worker 200 false
  23.286437351 stored    deployments worker 1266
  23.286437351 log       worker idalloc.dev/assignment 
  23.286437351 request   idalloc-controller-0#1 patch deployments worker 200 false
  23.292563837 stored    deployments worker 1267
  23.292563837 log       worker idalloc.dev/assignment {}
  23.311645267 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="0151225e-e651-4729-8dd2-72ba68440ab8"
  23.364379681 reconcile deployments/worker
  23.364809203 request   idalloc-controller-0#1 patch deployments worker 422 false
  23.370096544 request   idalloc-controller-0#1 get deployments worker 200 false
  23.370476894 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  23.418427159 request   idalloc-controller-0#1 get deployments worker 200 false
  23.464148402 stored    deployments worker 1268
  23.464148402 log       worker idalloc.dev/assignment 
  23.464148402 request   idalloc-controller-0#1 patch deployments worker 200 false
  23.465169222 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="6c5f34b0-5a52-4804-8b0e-d4bfc5aad40c"
  23.477742709 stored    deployments worker 1269
  23.477742709 log       worker idalloc.dev/assignment {}
  23.525375456 reconcile deployments/worker
  23.527813498 request   idalloc-controller-0#1 patch deployments worker 422 false
  23.535002356 request   idalloc-controller-0#1 get deployments worker 200 false
  23.552636786 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  23.606441874 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.606441875 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.606441876 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.606441877 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.606441878 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.606441879 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.606441880 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.606556322 request   idalloc-controller-0#1 get deployments worker 200 false
  23.612238535 stored    deployments worker 1270
  23.612238535 log       worker idalloc.dev/assignment 
  23.612238535 request   idalloc-controller-0#1 patch deployments worker 200 false
  23.612722395 stored    deployments worker 1271
  23.612722395 log       worker idalloc.dev/assignment {}
  23.618402208 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="3055b345-d547-4142-ae76-b022e2d93e90"
  23.636763138 request   idalloc-controller-0#1 patch deployments worker 422 false
  23.648728576 request   idalloc-controller-0#1 get deployments worker 200 false
  23.661700716 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  23.683825029 reconcile deployments/worker
  23.712769497 request   idalloc-controller-0#1 get deployments worker 200 false
  23.723047001 stored    deployments worker 1272
  23.723047001 log       worker idalloc.dev/assignment 
  23.723047001 request   idalloc-controller-0#1 patch deployments worker 200 false
  23.723181490 log       idalloc-controller-0#1 "msg"="Reconciler error" "error"="plan: what was written came back changed: idalloc.dev/assignment of Deployment/worker in namespace sim: an admission webhook or policy of the cluster changes that; exempt idalloc's keys from it" "owner"="Deployment/worker" "namespace"="sim" "reconcileID"="b607d2b5-0b30-4d18-8ca4-599cf6fe9e9e"
  23.780921182 request   idalloc-controller-0#1 patch deployments worker 422 false
  23.791185097 request   idalloc-controller-0#1 get deployments worker 200 false
  23.793411653 log       idalloc-controller-0#1 "level"=1 "msg"="something changed meanwhile" "owner"="Deployment/worker" "namespace"="sim" "detail"="plan: the object changed since it was read: patch deployments \"worker\" in namespace sim: the server rejected our request due to an error in our request: testing value /metadata/generation failed: test failed"
  23.807720459 stored    deployments worker 1273
  23.807720459 log       worker idalloc.dev/assignment {}
  23.834907626 request   idalloc-controller-0#1 get deployments worker 200 false
  23.841455216 stored    deployments worker 1274
  23.841455216 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  23.841455216 request   idalloc-controller-0#1 patch deployments worker 200 false
  23.850293091 stored    pods worker-h1-9e3779b1-2 1275
  23.850293091 log       worker-h1-9e3779b1-2 idalloc.dev/receipt {"uid":"78dde6c4-0000-4000-8000-000000000004","owner":"Deployment/worker","id":1,"write":"3lkf7p5ry9vuo"}
  23.850293091 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-2 200 false
  23.854395008 stored    pods worker-h1-9e3779b1-1 1276
  23.854395008 log       worker-h1-9e3779b1-1 idalloc.dev/receipt {"uid":"daa66d13-0000-4000-8000-000000000003","owner":"Deployment/worker","id":0,"write":"1j8pnxac395qo"}
  23.854395008 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-1 200 false
  23.854788965 stored    pods worker-h1-9e3779b1-5 1277
  23.854788965 log       worker-h1-9e3779b1-5 idalloc.dev/receipt {"uid":"538453d7-0000-4000-8000-000000000007","owner":"Deployment/worker","id":2,"write":"2027gnlmxd92q"}
  23.854788965 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-5 200 false
  23.883061287 stored    pods worker-h1-9e3779b1-6 1278
  23.883061287 log       worker-h1-9e3779b1-6 idalloc.dev/receipt {"uid":"f1bbcd88-0000-4000-8000-000000000008","owner":"Deployment/worker","write":"1u6v16qocud6n"}
  23.883061287 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-6 200 false
  23.887744071 request   idalloc-controller-0#1 list pods  200 false
  23.888364925 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.888364926 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.888364927 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.888364928 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.888364929 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.888364930 event     idalloc-controller-0#1 deployments MODIFIED worker
  23.889000155 reconcile deployments/worker
  23.889000155 stored    replicasets worker-h1-9e3779b1 1279
  23.889000155 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  23.916705258 request   idalloc-controller-0#1 list pods  200 false
  23.920903983 stored    pods worker-h1-9e3779b1-5 1280
  23.920903983 log       worker-h1-9e3779b1-5 idalloc.dev/receipt {"uid":"538453d7-0000-4000-8000-000000000007","owner":"Deployment/worker","id":2,"begun":true,"write":"2dkfodln37jaj"}
  23.920903983 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-5 200 false
  23.921066862 stored    pods worker-h1-9e3779b1-2 1281
  23.921066862 log       worker-h1-9e3779b1-2 idalloc.dev/receipt {"uid":"78dde6c4-0000-4000-8000-000000000004","owner":"Deployment/worker","id":1,"begun":true,"write":"2bhk0kjto2j2i"}
  23.921066862 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-2 200 false
  23.921319026 stored    pods worker-h1-9e3779b1-1 1282
  23.921319026 log       worker-h1-9e3779b1-1 idalloc.dev/receipt {"uid":"daa66d13-0000-4000-8000-000000000003","owner":"Deployment/worker","id":0,"begun":true,"write":"2tm4xytp5f7cw"}
  23.921319026 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-1 200 false
  23.938454686 reconcile deployments/worker
  23.939312519 stored    deployments worker 1283
  23.939312519 log       worker idalloc.dev/assignment {}
  23.986297985 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
  24.013988067 event     idalloc-controller-0#1 deployments MODIFIED worker
  24.013988068 event     idalloc-controller-0#1 deployments MODIFIED worker
  24.013988069 event     idalloc-controller-0#1 deployments MODIFIED worker
  24.013988070 event     idalloc-controller-0#1 deployments MODIFIED worker
  24.015701267 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  24.019989741 reconcile deployments/worker
  24.019989741 stored    replicasets worker-h1-9e3779b1 1284
  24.019989741 log       worker-h1-9e3779b1 idalloc.dev/assignment {}
  24.032087641 reconcile deployments/worker
  24.079457629 sync      worker-h1-9e3779b1-5 538453d7-0000-4000-8000-000000000007
  24.079457629 stored    pods worker-h1-9e3779b1-5 1285
  24.105550442 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  24.185401412 reconcile replicasets/worker-h1-9e3779b1
  24.207110263 reconcile deployments/worker
  24.315154835 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-1
  24.315154836 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-5
  24.315154837 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-6
  24.315154838 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-5
  24.315154839 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
  24.315154840 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-1
  24.315154841 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-5
  24.339400630 request   idalloc-controller-0#1 create events  201 false
  24.344968603 request   idalloc-controller-0#1 create events  201 false
  24.369412995 request   idalloc-controller-0#1 get deployments worker 200 false
  24.379336031 stored    deployments worker 1286
  24.379336031 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  24.379336031 request   idalloc-controller-0#1 patch deployments worker 200 false
  24.393906913 event     idalloc-controller-0#1 deployments MODIFIED worker
  24.405540896 reconcile deployments/worker
  24.405540896 stored    replicasets worker-h1-9e3779b1 1287
  24.405540896 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  24.470590254 stored    deployments worker 1288
  24.470590254 log       worker idalloc.dev/assignment {}
  24.494623864 reconcile deployments/worker
  24.494623864 stored    replicasets worker-h1-9e3779b1 1289
  24.494623864 log       worker-h1-9e3779b1 idalloc.dev/assignment {}
  24.507803587 reconcile replicasets/worker-h1-9e3779b1
  24.590010459 start     worker-h1-9e3779b1-5#1 node-0
  24.590010459 begin     worker-h1-9e3779b1-5#1 2 3 1277
  24.595272968 reconcile deployments/worker
  24.757528607 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  24.757528608 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  25.021064693 sync      worker-h1-9e3779b1-1 daa66d13-0000-4000-8000-000000000003
  25.021064693 heard     worker-h1-9e3779b1-1#1 0 3 1276
  25.544812257 event     idalloc-controller-0#1 deployments MODIFIED worker
  25.559294142 request   idalloc-controller-0#1 get deployments worker 200 false
  25.569550362 stored    deployments worker 1290
  25.569550362 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  25.569550362 request   idalloc-controller-0#1 patch deployments worker 200 false
  25.603427169 reconcile deployments/worker
  25.603427169 stored    replicasets worker-h1-9e3779b1 1291
  25.603427169 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  25.617302712 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  25.625554777 reconcile replicasets/worker-h1-9e3779b1
  25.632520249 event     idalloc-controller-0#1 deployments MODIFIED worker
  25.658099710 stored    deployments worker 1292
  25.658099710 log       worker idalloc.dev/assignment {}
  25.661173858 sync      worker-h1-9e3779b1-2 78dde6c4-0000-4000-8000-000000000004
  25.661173858 heard     worker-h1-9e3779b1-2#1 1 3 1275
  25.702268105 reconcile deployments/worker
  25.702268105 stored    replicasets worker-h1-9e3779b1 1293
  25.702268105 log       worker-h1-9e3779b1 idalloc.dev/assignment {}
  25.831182292 reconcile deployments/worker
  25.835007994 event     idalloc-controller-0#1 deployments MODIFIED worker
  25.835430608 request   idalloc-controller-0#1 get deployments worker 200 false
  25.845465474 stored    deployments worker 1294
  25.845465474 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  25.845465474 request   idalloc-controller-0#1 patch deployments worker 200 false
  25.847159325 stored    deployments worker 1295
  25.847159325 log       worker idalloc.dev/assignment {}
  25.885673138 event     idalloc-controller-0#1 deployments MODIFIED worker
  25.887139404 reconcile replicasets/worker-h1-9e3779b1
  25.895333375 reconcile deployments/worker
  25.935256137 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  26.110544402 event     idalloc-controller-0#1 deployments MODIFIED worker
  26.110636418 request   idalloc-controller-0#1 get deployments worker 200 false
  26.122676665 stored    deployments worker 1296
  26.122676665 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  26.122676665 request   idalloc-controller-0#1 patch deployments worker 200 false
  26.143653790 stored    deployments worker 1297
  26.143653790 log       worker idalloc.dev/assignment {}
  26.311029833 event     idalloc-controller-0#1 deployments MODIFIED worker
  26.311029834 event     idalloc-controller-0#1 deployments MODIFIED worker
  26.325477062 request   idalloc-controller-0#1 get deployments worker 200 false
  26.382339818 sync      worker-h1-9e3779b1-5 538453d7-0000-4000-8000-000000000007
  26.382339818 stored    pods worker-h1-9e3779b1-5 1298
  26.392409532 reconcile replicasets/worker-h1-9e3779b1
  26.392409532 stored    replicasets worker-h1-9e3779b1 1299
  26.415647726 reconcile replicasets/worker-h1-9e3779b1
  26.439617060 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  26.494559958 reconcile deployments/worker
  26.494559958 stored    deployments worker 1300
  26.530201966 stored    deployments worker 1301
  26.530201966 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  26.530201966 request   idalloc-controller-0#1 patch deployments worker 200 false
  26.530978849 stored    deployments worker 1302
  26.530978849 log       worker idalloc.dev/assignment {}
  26.535657692 reconcile deployments/worker
  26.577826479 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-5
  26.656598384 event     idalloc-controller-0#1 deployments MODIFIED worker
  26.656598385 event     idalloc-controller-0#1 deployments MODIFIED worker
  26.959020310 event     idalloc-controller-0#1 deployments MODIFIED worker
  26.964115908 request   idalloc-controller-0#1 get deployments worker 200 false
  27.333117121 stored    deployments worker 1303
  27.333117121 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  27.333117121 request   idalloc-controller-0#1 patch deployments worker 200 false
  27.379396967 stored    deployments worker 1304
  27.379396967 log       worker idalloc.dev/assignment {}
  27.398441709 event     idalloc-controller-0#1 deployments MODIFIED worker
  27.398441710 event     idalloc-controller-0#1 deployments MODIFIED worker
  27.404233404 request   idalloc-controller-0#1 get deployments worker 200 false
  27.496703002 reconcile deployments/worker
  27.561458131 sync      worker-h1-9e3779b1-5 538453d7-0000-4000-8000-000000000007
  28.963036884 stored    deployments worker 1305
  28.963036884 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  28.963036884 request   idalloc-controller-0#1 patch deployments worker 200 false
  28.964732451 stored    deployments worker 1306
  28.964732451 log       worker idalloc.dev/assignment {}
  29.025340160 event     idalloc-controller-0#1 deployments MODIFIED worker
  29.025340161 event     idalloc-controller-0#1 deployments MODIFIED worker
  29.026060520 request   idalloc-controller-0#1 get deployments worker 200 false
  29.112830712 reconcile deployments/worker
  31.575736093 event     idalloc-controller-0#1 deployments BOOKMARK 1306
  32.176975265 stored    deployments worker 1307
  32.176975265 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  32.176975265 request   idalloc-controller-0#1 patch deployments worker 200 false
  32.178922286 reconcile deployments/worker
  32.178922286 stored    replicasets worker-h1-9e3779b1 1308
  32.178922286 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  32.235248809 stored    deployments worker 1309
  32.235248809 log       worker idalloc.dev/assignment {}
  32.244301278 reconcile replicasets/worker-h1-9e3779b1
  32.271453112 reconcile deployments/worker
  32.271453112 stored    replicasets worker-h1-9e3779b1 1310
  32.271453112 log       worker-h1-9e3779b1 idalloc.dev/assignment {}
  32.306303080 reconcile deployments/worker
  32.325912499 reconcile replicasets/worker-h1-9e3779b1
  32.351555811 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  32.395660392 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  32.398634943 event     idalloc-controller-0#1 deployments MODIFIED worker
  32.464092392 event     idalloc-controller-0#1 deployments MODIFIED worker
  32.483162577 request   idalloc-controller-0#1 get deployments worker 200 false
  38.589582494 stored    deployments worker 1311
  38.589582494 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  38.589582494 request   idalloc-controller-0#1 patch deployments worker 200 false
  38.660808152 stored    deployments worker 1312
  38.660808152 log       worker idalloc.dev/assignment {}
  38.712706866 event     idalloc-controller-0#1 deployments MODIFIED worker
  38.806284430 reconcile deployments/worker
  38.867946427 event     idalloc-controller-0#1 deployments MODIFIED worker
  38.874786986 request   idalloc-controller-0#1 get deployments worker 200 false
  40.451315893 event     idalloc-controller-0#1 pods BOOKMARK 1312
  48.598888380 stored    deployments worker 1313
  48.598888380 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  48.598888380 request   idalloc-controller-0#1 patch deployments worker 200 false
  48.644309001 stored    deployments worker 1314
  48.644309001 log       worker idalloc.dev/assignment {}
  48.730796602 event     idalloc-controller-0#1 deployments MODIFIED worker
  48.730796603 event     idalloc-controller-0#1 deployments MODIFIED worker
  48.748199564 request   idalloc-controller-0#1 get deployments worker 200 false
  48.749291791 reconcile deployments/worker
  58.615218310 stored    deployments worker 1315
  58.615218310 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  58.615218310 request   idalloc-controller-0#1 patch deployments worker 200 false
  58.621610658 stored    deployments worker 1316
  58.621610658 log       worker idalloc.dev/assignment {}
  58.625100224 event     idalloc-controller-0#1 deployments MODIFIED worker
  58.690647193 event     idalloc-controller-0#1 deployments MODIFIED worker
  58.701928918 request   idalloc-controller-0#1 get deployments worker 200 false
  58.760781612 reconcile deployments/worker
  68.637257889 stored    deployments worker 1317
  68.637257889 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  68.637257889 request   idalloc-controller-0#1 patch deployments worker 200 false
  68.689255589 event     idalloc-controller-0#1 deployments MODIFIED worker
  68.912745987 reconcile deployments/worker
  68.912745987 stored    replicasets worker-h1-9e3779b1 1318
  68.912745987 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-1","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
  68.947697731 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
  68.982856243 reconcile deployments/worker
  69.081584625 reconcile replicasets/worker-h1-9e3779b1
  74.392233826 event     idalloc-controller-0#1 jobs BOOKMARK 1318
  76.254448504 event     idalloc-controller-0#1 statefulsets BOOKMARK 1318
  76.428788507 event     idalloc-controller-0#1 replicasets BOOKMARK 1318
  94.203009862 event     idalloc-controller-0#1 deployments BOOKMARK 1318
  98.539551757 event     idalloc-controller-0#1 pods BOOKMARK 1318
 130.040146702 event     idalloc-controller-0#1 jobs BOOKMARK 1318
 133.162543596 event     idalloc-controller-0#1 statefulsets BOOKMARK 1318
 139.011874407 event     idalloc-controller-0#1 replicasets BOOKMARK 1318
 152.738122643 event     idalloc-controller-0#1 deployments BOOKMARK 1318
 156.022076532 event     idalloc-controller-0#1 pods BOOKMARK 1318
 188.522986345 event     idalloc-controller-0#1 statefulsets BOOKMARK 1318
 189.573915981 event     idalloc-controller-0#1 jobs BOOKMARK 1318
 201.123516925 event     idalloc-controller-0#1 replicasets BOOKMARK 1318
 211.633307000 event     idalloc-controller-0#1 pods BOOKMARK 1318
 211.694374588 event     idalloc-controller-0#1 deployments BOOKMARK 1318
 247.061549611 event     idalloc-controller-0#1 jobs BOOKMARK 1318
 252.248006475 event     idalloc-controller-0#1 statefulsets BOOKMARK 1318
 261.673608306 event     idalloc-controller-0#1 replicasets BOOKMARK 1318
 270.606759370 event     idalloc-controller-0#1 deployments BOOKMARK 1318
 275.220697026 event     idalloc-controller-0#1 pods BOOKMARK 1318
 284.237523143 heal      
 284.237523143 repair    
 284.237523143 stored    pods worker-h1-9e3779b1-1 1319
 284.237523143 stored    pods worker-h1-9e3779b1-2 1320
 284.237523143 stored    pods worker-h1-9e3779b1-4 1321
 284.237523143 stored    pods worker-h1-9e3779b1-4 1322
 284.315566705 reconcile deployments/worker
 284.336059869 reconcile replicasets/worker-h1-9e3779b1
 284.348224099 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-1
 284.513479059 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
 284.513479060 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-4
 284.513479061 event     idalloc-controller-0#1 pods DELETED worker-h1-9e3779b1-4
 284.515360235 request   idalloc-controller-0#1 get pods worker-h1-9e3779b1-4 404 false
 284.519327722 request   idalloc-controller-0#1 get pods worker-h1-9e3779b1-4 404 false
 285.463089761 sync      worker-h1-9e3779b1-1 daa66d13-0000-4000-8000-000000000003
 285.463089761 terminate worker-h1-9e3779b1-1#1
 285.484358629 stop      worker-h1-9e3779b1-1#1 0
 285.484358629 exit      worker-h1-9e3779b1-1#1 context canceled
 285.639809561 sync      worker-h1-9e3779b1-5 538453d7-0000-4000-8000-000000000007
 285.903428311 sync      worker-h1-9e3779b1-2 78dde6c4-0000-4000-8000-000000000004
 285.903428311 terminate worker-h1-9e3779b1-2#1
 286.018468164 stop      worker-h1-9e3779b1-2#1 1
 286.018468164 exit      worker-h1-9e3779b1-2#1 context canceled
 286.284096916 sync      worker-h1-9e3779b1-1 daa66d13-0000-4000-8000-000000000003
 286.284096916 stored    pods worker-h1-9e3779b1-1 1323
 286.284096916 stored    pods worker-h1-9e3779b1-1 1324
 286.284096916 stored    pods worker-h1-9e3779b1-1 1325
 286.288617068 reconcile replicasets/worker-h1-9e3779b1
 286.312270422 reconcile deployments/worker
 286.328770456 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-1
 286.328770457 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-1
 286.328770458 event     idalloc-controller-0#1 pods DELETED worker-h1-9e3779b1-1
 286.329707583 stored    deployments worker 1326
 286.329707583 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
 286.329707583 request   idalloc-controller-0#1 patch deployments worker 200 false
 286.336309523 stored    pods worker-h1-9e3779b1-6 1327
 286.336309523 log       worker-h1-9e3779b1-6 idalloc.dev/receipt {"uid":"f1bbcd88-0000-4000-8000-000000000008","owner":"Deployment/worker","id":0,"write":"3clrs6cp6mhr9"}
 286.336309523 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-6 200 false
 286.336678885 event     idalloc-controller-0#1 deployments MODIFIED worker
 286.341651283 reconcile deployments/worker
 286.341651283 stored    replicasets worker-h1-9e3779b1 1328
 286.341651283 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","1":"worker-h1-9e3779b1-2","2":"worker-h1-9e3779b1-5"}
 286.345256385 request   idalloc-controller-0#1 list pods  200 false
 286.353784728 request   idalloc-controller-0#1 list pods  200 false
 286.369594166 stored    pods worker-h1-9e3779b1-6 1329
 286.369594166 log       worker-h1-9e3779b1-6 idalloc.dev/receipt {"uid":"f1bbcd88-0000-4000-8000-000000000008","owner":"Deployment/worker","id":0,"begun":true,"write":"24us34ge4ooa7"}
 286.369594166 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-6 200 false
 286.453339933 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 286.457140229 reconcile replicasets/worker-h1-9e3779b1
 286.529512918 reconcile deployments/worker
 286.533206082 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-6
 286.533206083 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-6
 287.048091132 sync      worker-h1-9e3779b1-2 78dde6c4-0000-4000-8000-000000000004
 287.048091132 stored    pods worker-h1-9e3779b1-2 1330
 287.048091132 stored    pods worker-h1-9e3779b1-2 1331
 287.048091132 stored    pods worker-h1-9e3779b1-2 1332
 287.067739231 sync      worker-h1-9e3779b1-6 f1bbcd88-0000-4000-8000-000000000008
 287.067739231 stored    pods worker-h1-9e3779b1-6 1333
 287.073981083 reconcile deployments/worker
 287.081374278 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
 287.081374279 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-2
 287.083715760 stored    deployments worker 1334
 287.083715760 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","1":"worker-h1-9e3779b1-7","2":"worker-h1-9e3779b1-5"}
 287.083715760 request   idalloc-controller-0#1 patch deployments worker 200 false
 287.089347060 reconcile replicasets/worker-h1-9e3779b1
 287.092864123 stored    pods worker-h1-9e3779b1-7 1335
 287.092864123 log       worker-h1-9e3779b1-7 idalloc.dev/receipt {"uid":"8ff34739-0000-4000-8000-000000000009","owner":"Deployment/worker","id":1,"write":"1bj5kllqrhhdh"}
 287.092864123 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-7 200 false
 287.102164614 request   idalloc-controller-0#1 list pods  200 false
 287.110449885 request   idalloc-controller-0#1 list pods  200 false
 287.150655026 event     idalloc-controller-0#1 deployments MODIFIED worker
 287.153360173 stored    pods worker-h1-9e3779b1-7 1336
 287.153360173 log       worker-h1-9e3779b1-7 idalloc.dev/receipt {"uid":"8ff34739-0000-4000-8000-000000000009","owner":"Deployment/worker","id":1,"begun":true,"write":"3b5w1vikf23o8"}
 287.153360173 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-7 200 false
 287.165128672 reconcile deployments/worker
 287.165128672 stored    replicasets worker-h1-9e3779b1 1337
 287.165128672 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","1":"worker-h1-9e3779b1-7","2":"worker-h1-9e3779b1-5"}
 287.254561407 event     idalloc-controller-0#1 pods DELETED worker-h1-9e3779b1-2
 287.265826097 reconcile deployments/worker
 287.296599891 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 287.334628920 reconcile replicasets/worker-h1-9e3779b1
 287.655419072 sync      worker-h1-9e3779b1-7 8ff34739-0000-4000-8000-000000000009
 287.655419072 stored    pods worker-h1-9e3779b1-7 1338
 287.743778854 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-6
 287.743778855 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-7
 287.743778856 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-7
 287.743778857 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-7
 287.855519857 reconcile deployments/worker
 287.866336194 reconcile replicasets/worker-h1-9e3779b1
 287.942666852 start     worker-h1-9e3779b1-6#1 node-0
 287.942666852 begin     worker-h1-9e3779b1-6#1 0 3 1327
 288.156941321 start     worker-h1-9e3779b1-7#1 node-0
 288.156941321 begin     worker-h1-9e3779b1-7#1 1 3 1335
 288.362796348 sync      worker-h1-9e3779b1-6 f1bbcd88-0000-4000-8000-000000000008
 288.362796348 stored    pods worker-h1-9e3779b1-6 1339
 288.420993584 reconcile deployments/worker
 288.598673483 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-6
 288.614004814 reconcile replicasets/worker-h1-9e3779b1
 288.614004814 stored    replicasets worker-h1-9e3779b1 1340
 288.627709921 reconcile deployments/worker
 288.627709921 stored    deployments worker 1341
 288.650909812 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 288.672048572 reconcile deployments/worker
 288.765569926 event     idalloc-controller-0#1 deployments MODIFIED worker
 288.771832855 reconcile replicasets/worker-h1-9e3779b1
 289.393060134 sync      worker-h1-9e3779b1-6 f1bbcd88-0000-4000-8000-000000000008
 289.831785645 sync      worker-h1-9e3779b1-7 8ff34739-0000-4000-8000-000000000009
 289.831785645 stored    pods worker-h1-9e3779b1-7 1342
 289.947702061 reconcile deployments/worker
 289.968588370 reconcile replicasets/worker-h1-9e3779b1
 289.968588370 stored    replicasets worker-h1-9e3779b1 1343
 289.980669503 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 290.001856593 reconcile deployments/worker
 290.001856593 stored    deployments worker 1344
 290.051234518 sync      worker-h1-9e3779b1-7 8ff34739-0000-4000-8000-000000000009
 290.078804385 reconcile deployments/worker
 290.162139169 event     idalloc-controller-0#1 deployments MODIFIED worker
 290.207547613 reconcile replicasets/worker-h1-9e3779b1
 290.229783531 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-7
 303.194253736 request   idalloc-controller-0#1 watch pods  200 false
 305.127278474 event     idalloc-controller-0#1 jobs BOOKMARK 1344
 308.521026689 event     idalloc-controller-0#1 statefulsets BOOKMARK 1344
 317.986605538 event     idalloc-controller-0#1 replicasets BOOKMARK 1344
 327.867794608 event     idalloc-controller-0#1 deployments BOOKMARK 1344
 361.621667722 request   idalloc-controller-0#1 watch jobs  200 false
 367.757718710 event     idalloc-controller-0#1 statefulsets BOOKMARK 1344
 377.101232027 event     idalloc-controller-0#1 replicasets BOOKMARK 1344
 383.854762528 event     idalloc-controller-0#1 pods BOOKMARK 1344
 390.016992711 event     idalloc-controller-0#1 deployments BOOKMARK 1344
 425.483422300 event     idalloc-controller-0#1 statefulsets BOOKMARK 1344
 439.005818307 event     idalloc-controller-0#1 replicasets BOOKMARK 1344
 445.501969265 event     idalloc-controller-0#1 pods BOOKMARK 1344
 446.512566269 event     idalloc-controller-0#1 jobs BOOKMARK 1344
 446.962136795 event     idalloc-controller-0#1 deployments BOOKMARK 1344
 471.718199210 request   idalloc-controller-0#1 watch deployments  200 false
 481.021158496 event     idalloc-controller-0#1 statefulsets BOOKMARK 1344
 497.861739566 event     idalloc-controller-0#1 replicasets BOOKMARK 1344
 507.727787733 event     idalloc-controller-0#1 pods BOOKMARK 1344
 509.559228749 event     idalloc-controller-0#1 jobs BOOKMARK 1344
 512.147118584 request   idalloc-controller-0#1 watch statefulsets  200 false
 516.108573325 event     idalloc-controller-0#1 deployments BOOKMARK 1344
 530.237523143 stored    deployments worker 1345
 530.341623945 event     idalloc-controller-0#1 deployments MODIFIED worker
 530.344999043 request   idalloc-controller-0#1 get deployments worker 200 false
 530.354877883 stored    pods worker-h1-9e3779b1-6 1346
 530.354877883 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-6 200 false
 530.355747369 reconcile replicasets/worker-h1-9e3779b1
 530.358681011 stored    pods worker-h1-9e3779b1-5 1347
 530.358681011 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-5 200 false
 530.366716627 stored    pods worker-h1-9e3779b1-7 1348
 530.366716627 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-7 200 false
 530.420033409 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-6
 530.430455265 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-5
 530.501559010 reconcile replicasets/worker-h1-9e3779b1
 530.657825941 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-7
 530.664652490 reconcile deployments/worker
 530.664652490 stored    replicasets worker-h1-9e3779b1 1349
 530.672212245 reconcile deployments/worker
 530.751600266 reconcile replicasets/worker-h1-9e3779b1
 530.751600266 stored    pods worker-h1-9e3779b1-8 1350
 530.751600266 stored    pods worker-h1-9e3779b1-9 1351
 530.826232154 sync      worker-h1-9e3779b1-6 f1bbcd88-0000-4000-8000-000000000008
 530.826232154 heard     worker-h1-9e3779b1-6#1 0 5 1327
 530.851981891 reconcile deployments/worker
 531.120101559 reconcile replicasets/worker-h1-9e3779b1
 531.120101559 stored    replicasets worker-h1-9e3779b1 1352
 531.141598082 reconcile replicasets/worker-h1-9e3779b1
 531.152163844 reconcile deployments/worker
 531.152163844 stored    deployments worker 1353
 531.172466640 reconcile deployments/worker
 531.185307242 sync      worker-h1-9e3779b1-7 8ff34739-0000-4000-8000-000000000009
 531.185307242 heard     worker-h1-9e3779b1-7#1 1 5 1335
 531.207489467 event     idalloc-controller-0#1 deployments MODIFIED worker
 531.212680677 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 531.212680678 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 531.439117107 event     idalloc-controller-0#1 pods ADDED worker-h1-9e3779b1-8
 531.439117108 event     idalloc-controller-0#1 pods ADDED worker-h1-9e3779b1-9
 531.439304020 stored    deployments worker 1354
 531.439304020 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","1":"worker-h1-9e3779b1-7","2":"worker-h1-9e3779b1-5","3":"worker-h1-9e3779b1-8"}
 531.439304020 request   idalloc-controller-0#1 patch deployments worker 200 false
 531.453760460 stored    pods worker-h1-9e3779b1-8 1355
 531.453760460 log       worker-h1-9e3779b1-8 idalloc.dev/receipt {"uid":"2e2ac0ea-0000-4000-8000-00000000000a","owner":"Deployment/worker","id":3,"write":"33jhewhf050dd"}
 531.453760460 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-8 200 false
 531.474309173 request   idalloc-controller-0#1 list pods  200 false
 531.479426724 request   idalloc-controller-0#1 list pods  200 false
 531.504248055 stored    pods worker-h1-9e3779b1-8 1356
 531.504248055 log       worker-h1-9e3779b1-8 idalloc.dev/receipt {"uid":"2e2ac0ea-0000-4000-8000-00000000000a","owner":"Deployment/worker","id":3,"begun":true,"write":"33ak14crwn647"}
 531.504248055 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-8 200 false
 531.541309012 reconcile deployments/worker
 531.541309012 stored    replicasets worker-h1-9e3779b1 1357
 531.541309012 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","1":"worker-h1-9e3779b1-7","2":"worker-h1-9e3779b1-5","3":"worker-h1-9e3779b1-8"}
 531.567582392 sync      worker-h1-9e3779b1-5 538453d7-0000-4000-8000-000000000007
 531.567582392 heard     worker-h1-9e3779b1-5#1 2 5 1277
 531.584782671 reconcile deployments/worker
 531.607545183 reconcile replicasets/worker-h1-9e3779b1
 531.687597972 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 531.688710094 sync      worker-h1-9e3779b1-8 2e2ac0ea-0000-4000-8000-00000000000a
 531.688710094 stored    pods worker-h1-9e3779b1-8 1358
 531.694255083 start     worker-h1-9e3779b1-8#1 node-0
 531.694255083 begin     worker-h1-9e3779b1-8#1 3 5 1355
 531.754859854 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-8
 531.754859855 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-8
 531.757076580 stored    deployments worker 1359
 531.757076580 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","1":"worker-h1-9e3779b1-7","2":"worker-h1-9e3779b1-5","3":"worker-h1-9e3779b1-8","4":"worker-h1-9e3779b1-9"}
 531.757076580 request   idalloc-controller-0#1 patch deployments worker 200 false
 531.768639710 stored    pods worker-h1-9e3779b1-9 1360
 531.768639710 log       worker-h1-9e3779b1-9 idalloc.dev/receipt {"uid":"cc623a9b-0000-4000-8000-00000000000b","owner":"Deployment/worker","id":4,"write":"3e9otcyd4i2eu"}
 531.768639710 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-9 200 false
 531.775590928 request   idalloc-controller-0#1 list pods  200 false
 531.785188780 request   idalloc-controller-0#1 list pods  200 false
 531.806324323 event     idalloc-controller-0#1 deployments MODIFIED worker
 531.811312009 stored    pods worker-h1-9e3779b1-9 1361
 531.811312009 log       worker-h1-9e3779b1-9 idalloc.dev/receipt {"uid":"cc623a9b-0000-4000-8000-00000000000b","owner":"Deployment/worker","id":4,"begun":true,"write":"18udur190ieqk"}
 531.811312009 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-9 200 false
 531.821308399 sync      worker-h1-9e3779b1-8 2e2ac0ea-0000-4000-8000-00000000000a
 531.821308399 stored    pods worker-h1-9e3779b1-8 1362
 531.936665639 reconcile deployments/worker
 531.936665639 stored    replicasets worker-h1-9e3779b1 1363
 531.936665639 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","1":"worker-h1-9e3779b1-7","2":"worker-h1-9e3779b1-5","3":"worker-h1-9e3779b1-8","4":"worker-h1-9e3779b1-9"}
 531.958318045 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 531.961188378 event     idalloc-controller-0#1 deployments MODIFIED worker
 531.967925063 reconcile replicasets/worker-h1-9e3779b1
 531.967925063 stored    replicasets worker-h1-9e3779b1 1364
 532.031226176 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 532.304739234 reconcile replicasets/worker-h1-9e3779b1
 532.340923184 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-8
 532.340923185 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-9
 532.340923186 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-9
 532.340923187 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-8
 532.389544308 reconcile deployments/worker
 532.389544308 stored    deployments worker 1365
 532.391502734 event     idalloc-controller-0#1 deployments MODIFIED worker
 532.399140709 reconcile deployments/worker
 533.015072272 sync      worker-h1-9e3779b1-9 cc623a9b-0000-4000-8000-00000000000b
 533.015072272 stored    pods worker-h1-9e3779b1-9 1366
 533.066033554 reconcile replicasets/worker-h1-9e3779b1
 533.133097279 reconcile deployments/worker
 533.154953075 sync      worker-h1-9e3779b1-8 2e2ac0ea-0000-4000-8000-00000000000a
 533.158171219 start     worker-h1-9e3779b1-9#1 node-0
 533.158171219 begin     worker-h1-9e3779b1-9#1 4 5 1360
 533.237523143 stored    deployments worker 1367
 533.240798558 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-9
 533.274033419 event     idalloc-controller-0#1 deployments MODIFIED worker
 533.306078612 request   idalloc-controller-0#1 get deployments worker 200 false
 533.325113115 stored    pods worker-h1-9e3779b1-6 1368
 533.325113115 request   idalloc-controller-0#1 patch pods worker-h1-9e3779b1-6 200 false
 533.388071048 reconcile deployments/worker
 533.388071048 stored    replicasets worker-h1-9e3779b1 1369
 533.412280618 reconcile deployments/worker
 533.455119680 reconcile replicasets/worker-h1-9e3779b1
 533.455119680 stored    pods worker-h1-9e3779b1-9 1370
 533.455119680 stored    pods worker-h1-9e3779b1-8 1371
 533.455119680 stored    pods worker-h1-9e3779b1-5 1372
 533.455119680 stored    pods worker-h1-9e3779b1-7 1373
 533.455119680 stored    replicasets worker-h1-9e3779b1 1374
 533.504840753 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 533.504970219 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 533.516141678 reconcile replicasets/worker-h1-9e3779b1
 533.516141678 stored    replicasets worker-h1-9e3779b1 1375
 533.544725797 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-6
 533.544725798 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-9
 533.544725799 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-8
 533.545248119 reconcile replicasets/worker-h1-9e3779b1
 533.564945930 reconcile deployments/worker
 533.564945930 stored    deployments worker 1376
 533.583400753 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-5
 533.583400754 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-7
 533.589895778 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 533.592358812 reconcile deployments/worker
 533.614939752 event     idalloc-controller-0#1 deployments MODIFIED worker
 534.022700999 sync      worker-h1-9e3779b1-6 f1bbcd88-0000-4000-8000-000000000008
 534.022700999 heard     worker-h1-9e3779b1-6#1 0 1 1327
 534.022955256 sync      worker-h1-9e3779b1-9 cc623a9b-0000-4000-8000-00000000000b
 534.022955256 terminate worker-h1-9e3779b1-9#1
 534.032004126 stop      worker-h1-9e3779b1-9#1 4
 534.032004126 exit      worker-h1-9e3779b1-9#1 context canceled
 534.625981720 sync      worker-h1-9e3779b1-7 8ff34739-0000-4000-8000-000000000009
 534.625981720 terminate worker-h1-9e3779b1-7#1
 534.635062581 stop      worker-h1-9e3779b1-7#1 1
 534.635062581 exit      worker-h1-9e3779b1-7#1 context canceled
 535.252422313 sync      worker-h1-9e3779b1-8 2e2ac0ea-0000-4000-8000-00000000000a
 535.252422313 terminate worker-h1-9e3779b1-8#1
 535.314084864 sync      worker-h1-9e3779b1-7 8ff34739-0000-4000-8000-000000000009
 535.314084864 stored    pods worker-h1-9e3779b1-7 1377
 535.314084864 stored    pods worker-h1-9e3779b1-7 1378
 535.314084864 stored    pods worker-h1-9e3779b1-7 1379
 535.322330836 reconcile replicasets/worker-h1-9e3779b1
 535.322330836 stored    replicasets worker-h1-9e3779b1 1380
 535.344001471 sync      worker-h1-9e3779b1-5 538453d7-0000-4000-8000-000000000007
 535.344001471 terminate worker-h1-9e3779b1-5#1
 535.410916066 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-7
 535.410916067 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-7
 535.410916068 event     idalloc-controller-0#1 pods DELETED worker-h1-9e3779b1-7
 535.413495249 reconcile replicasets/worker-h1-9e3779b1
 535.413589028 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 535.422073585 stored    deployments worker 1381
 535.422073585 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","2":"worker-h1-9e3779b1-5","3":"worker-h1-9e3779b1-8","4":"worker-h1-9e3779b1-9"}
 535.422073585 request   idalloc-controller-0#1 patch deployments worker 200 false
 535.454776489 reconcile deployments/worker
 535.454776489 stored    replicasets worker-h1-9e3779b1 1382
 535.454776489 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","2":"worker-h1-9e3779b1-5","3":"worker-h1-9e3779b1-8","4":"worker-h1-9e3779b1-9"}
 535.454776489 stored    deployments worker 1383
 535.484523218 stop      worker-h1-9e3779b1-5#1 2
 535.484523218 exit      worker-h1-9e3779b1-5#1 context canceled
 535.535185973 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 535.675598813 stop      worker-h1-9e3779b1-8#1 3
 535.675598813 exit      worker-h1-9e3779b1-8#1 context canceled
 535.704671990 reconcile deployments/worker
 535.784523472 event     idalloc-controller-0#1 deployments MODIFIED worker
 535.784523473 event     idalloc-controller-0#1 deployments MODIFIED worker
 535.801933382 sync      worker-h1-9e3779b1-9 cc623a9b-0000-4000-8000-00000000000b
 535.801933382 stored    pods worker-h1-9e3779b1-9 1384
 535.801933382 stored    pods worker-h1-9e3779b1-9 1385
 535.801933382 stored    pods worker-h1-9e3779b1-9 1386
 535.831317621 reconcile deployments/worker
 535.848270116 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-9
 535.851760037 stored    deployments worker 1387
 535.851760037 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","2":"worker-h1-9e3779b1-5","3":"worker-h1-9e3779b1-8"}
 535.851760037 request   idalloc-controller-0#1 patch deployments worker 200 false
 535.862257572 reconcile deployments/worker
 535.862257572 stored    replicasets worker-h1-9e3779b1 1388
 535.862257572 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","2":"worker-h1-9e3779b1-5","3":"worker-h1-9e3779b1-8"}
 535.874615331 event     idalloc-controller-0#1 deployments MODIFIED worker
 535.889973350 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-9
 535.889973351 event     idalloc-controller-0#1 pods DELETED worker-h1-9e3779b1-9
 535.895146566 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 535.920591147 reconcile deployments/worker
 535.937106464 reconcile replicasets/worker-h1-9e3779b1
 535.937106464 stored    replicasets worker-h1-9e3779b1 1389
 535.944989288 reconcile replicasets/worker-h1-9e3779b1
 535.978331657 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 536.005339067 reconcile deployments/worker
 536.005339067 stored    deployments worker 1390
 536.070528455 reconcile deployments/worker
 536.113305745 sync      worker-h1-9e3779b1-5 538453d7-0000-4000-8000-000000000007
 536.113305745 stored    pods worker-h1-9e3779b1-5 1391
 536.113305745 stored    pods worker-h1-9e3779b1-5 1392
 536.113305745 stored    pods worker-h1-9e3779b1-5 1393
 536.200256790 reconcile replicasets/worker-h1-9e3779b1
 536.200256790 stored    replicasets worker-h1-9e3779b1 1394
 536.211892526 reconcile replicasets/worker-h1-9e3779b1
 536.242876704 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-5
 536.242876705 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-5
 536.242876706 event     idalloc-controller-0#1 pods DELETED worker-h1-9e3779b1-5
 536.249313345 stored    deployments worker 1395
 536.249313345 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","3":"worker-h1-9e3779b1-8"}
 536.249313345 request   idalloc-controller-0#1 patch deployments worker 200 false
 536.251430481 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 536.362849303 event     idalloc-controller-0#1 deployments MODIFIED worker
 536.404848000 event     idalloc-controller-0#1 deployments MODIFIED worker
 536.839935461 reconcile deployments/worker
 536.839935461 stored    replicasets worker-h1-9e3779b1 1396
 536.839935461 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6","3":"worker-h1-9e3779b1-8"}
 536.839935461 stored    deployments worker 1397
 536.856188318 reconcile replicasets/worker-h1-9e3779b1
 537.039068966 reconcile deployments/worker
 537.133069999 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 537.326111857 event     idalloc-controller-0#1 deployments MODIFIED worker
 537.632518430 sync      worker-h1-9e3779b1-8 2e2ac0ea-0000-4000-8000-00000000000a
 537.632518430 stored    pods worker-h1-9e3779b1-8 1398
 537.632518430 stored    pods worker-h1-9e3779b1-8 1399
 537.632518430 stored    pods worker-h1-9e3779b1-8 1400
 537.694402499 reconcile replicasets/worker-h1-9e3779b1
 537.694402499 stored    replicasets worker-h1-9e3779b1 1401
 537.717600880 reconcile deployments/worker
 537.717600880 stored    deployments worker 1402
 537.753620744 event     idalloc-controller-0#1 deployments MODIFIED worker
 537.767417026 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 537.771440238 reconcile deployments/worker
 537.827584688 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-8
 537.835577142 stored    deployments worker 1403
 537.835577142 log       worker idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6"}
 537.835577142 request   idalloc-controller-0#1 patch deployments worker 200 false
 537.978132692 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-8
 537.994178473 reconcile deployments/worker
 537.994178473 stored    replicasets worker-h1-9e3779b1 1404
 537.994178473 log       worker-h1-9e3779b1 idalloc.dev/assignment {"0":"worker-h1-9e3779b1-6"}
 538.002222974 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 538.020315060 reconcile deployments/worker
 538.054913416 event     idalloc-controller-0#1 deployments MODIFIED worker
 538.205251767 event     idalloc-controller-0#1 pods DELETED worker-h1-9e3779b1-8
 538.305496614 reconcile replicasets/worker-h1-9e3779b1
 553.215931420 event     idalloc-controller-0#1 replicasets BOOKMARK 1404
 554.900815819 request   idalloc-controller-0#1 watch replicasets  200 false
 560.228576041 event     idalloc-controller-0#1 statefulsets BOOKMARK 1404
 565.449259301 event     idalloc-controller-0#1 jobs BOOKMARK 1404
 570.510151930 event     idalloc-controller-0#1 pods BOOKMARK 1404
 577.006570328 event     idalloc-controller-0#1 deployments BOOKMARK 1404
 612.959498434 event     idalloc-controller-0#1 replicasets BOOKMARK 1404
 620.540964988 event     idalloc-controller-0#1 statefulsets BOOKMARK 1404
 625.074789854 event     idalloc-controller-0#1 jobs BOOKMARK 1404
 626.870390906 event     idalloc-controller-0#1 pods BOOKMARK 1404
 631.967489863 event     idalloc-controller-0#1 deployments BOOKMARK 1404
 658.237523143 stored    deployments worker 1405
 658.237523143 terminate idalloc-controller-0#1
 658.245013112 event     idalloc-controller-0#1 deployments MODIFIED worker
 658.251405100 request   idalloc-controller-0#1 get deployments worker 200 false
 658.386478085 reconcile deployments/worker
 658.386478085 stored    replicasets worker-h1-9e3779b1 1406
 658.434855086 event     idalloc-controller-0#1 replicasets MODIFIED worker-h1-9e3779b1
 658.459973792 reconcile deployments/worker
 658.916720670 reconcile replicasets/worker-h1-9e3779b1
 658.916720670 stored    pods worker-h1-9e3779b1-6 1407
 658.916720670 stored    replicasets worker-h1-9e3779b1 1408
 658.926430940 reconcile replicasets/worker-h1-9e3779b1
 658.926430940 stored    replicasets worker-h1-9e3779b1 1409
 658.926792791 reconcile deployments/worker
 658.926792791 stored    deployments worker 1410
 659.043354021 reconcile deployments/worker
 659.073173380 reconcile replicasets/worker-h1-9e3779b1
 659.083386064 event     idalloc-controller-0#1 pods MODIFIED worker-h1-9e3779b1-6
 659.102929886 event     idalloc-controller-0#1 deployments MODIFIED worker
 659.237523143 log       idalloc-controller-0#1 "level"=0 "msg"="Stopping and waiting for non leader election runnables"
 659.237523143 log       idalloc-controller-0#1 "level"=0 "msg"="Stopping and waiting for leader election runnables"
 659.237523143 log       idalloc-controller-0#1 "level"=0 "msg"="Stopping and waiting for warmup runnables"
 659.237523143 log       idalloc-controller-0#1 "level"=0 "msg"="Shutdown signal received, waiting for all workers to finish"
 659.237523143 log       idalloc-controller-0#1 "level"=0 "msg"="All workers finished"
 659.237523143 log       idalloc-controller-0#1 "level"=0 "msg"="Stopping and waiting for caches"
 659.237523143 log       idalloc-controller-0#1 "level"=0 "msg"="Stopping and waiting for webhooks"
 659.237523143 log       idalloc-controller-0#1 "level"=0 "msg"="Stopping and waiting for HTTP servers"
 659.237523143 log       idalloc-controller-0#1 "level"=0 "msg"="Wait completed, proceeding to shutdown the manager"
 659.237523143 exit      idalloc-controller-0#1 
 659.927519854 sync      worker-h1-9e3779b1-6 f1bbcd88-0000-4000-8000-000000000008
 659.927519854 terminate worker-h1-9e3779b1-6#1
 660.395096821 stop      worker-h1-9e3779b1-6#1 0
 660.395096821 exit      worker-h1-9e3779b1-6#1 context canceled
 661.232632212 sync      worker-h1-9e3779b1-6 f1bbcd88-0000-4000-8000-000000000008
 661.232632212 stored    pods worker-h1-9e3779b1-6 1411
 661.232632212 stored    pods worker-h1-9e3779b1-6 1412
 661.232632212 stored    pods worker-h1-9e3779b1-6 1413
 661.276522769 reconcile deployments/worker
 661.575008048 reconcile replicasets/worker-h1-9e3779b1
 661.575008048 stored    replicasets worker-h1-9e3779b1 1414
 661.622104370 reconcile replicasets/worker-h1-9e3779b1
 661.649603336 reconcile deployments/worker
 661.649603336 stored    deployments worker 1415
 661.901047244 reconcile deployments/worker
 718.237523143 end       1368
