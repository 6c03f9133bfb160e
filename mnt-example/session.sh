# Three brokers with real log directories; one of them is the controller.
cd mnt
ls
ls brokers/ids
cat controller
# A topic: three partitions, each with a replica on every broker.
mkdir -p brokers/topics/orders/partitions/{0..2}
# `settled` is the barrier: it returns when all that follows from earlier changes has happened, and prints the zxid.
cat .state/settled
cat brokers/topics/orders/partitions/0/state
ls -d ../cluster/broker-?/orders-?
# What is wrong is refused where it is written, and the reason is kept.
echo '{"version":1,"partitions":{"0":[1,1]}}' > brokers/topics/wrong
tail -n 1 .state/errors
# Broker 3 dies, and leaves the in-sync sets.
rm brokers/ids/3
cat .state/settled
cat brokers/topics/orders/partitions/0/state
# The topic is to be deleted. That has to wait, and says why; the replicas on live brokers are gone already.
mkdir admin/delete_topics/orders
cat .state/settled
cat .state/topics/orders/deletion
ls -d ../cluster/broker-?/orders-?
# Broker 3 starts again, and the deletion ends; inotifywait is told.
inotifywait -e delete_self admin/delete_topics/orders &
touch brokers/ids/3
wait
# Gone in all three places: the tree, the metadata caches, the disks.
ls brokers/topics
ls .state/brokers/?/metadata
ls ../cluster/broker-3
