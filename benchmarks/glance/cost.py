import sys, time
import sidelong as sl
names=["exp3.g++","glance"]
for K in map(int,sys.argv[1:] or (10,100,1000)):
    for g in ("self_loops","nested"):
        graph=getattr(sl.graphs,g)(K)
        w=sl.losses.bernoulli([.5-.1*(i==3) for i in range(K)])
        R={10:10000,100:5000,1000:4000}[K]
        best={}
        for rep in range(8):
            for n in names:
                sl.simulate(n,graph,w,rounds=1,seed=0,threads=1,checkpoints=[1])
                b=time.process_time(); sl.simulate(n,graph,w,rounds=R,seed=0,threads=1,checkpoints=[R]); s=(time.process_time()-b)/R
                best[n]=min(best.get(n,9),s)
        print(K,g,{n:f"{v*1e9:.0f} ns" for n,v in best.items()}, f"ratio {best[names[-1]]/best[names[0]]:.2f}",flush=True)
