#!/usr/bin/env bash
# What the container runs: a command of distributary. Spark on Kubernetes starts the same image with `driver …` (what
# spark-submit, and so the Spark operator, asks for in cluster mode) and with `executor`, and says the rest in the
# environment.
set -euo pipefail

case "${1-}" in
  driver)
    shift
    # The signal is for Python, which finishes the batch in flight and ends. Java, in which it runs here, would end at once;
    # what is ignored when it starts it leaves alone.
    trap '' TERM
    exec spark-submit --deploy-mode client --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
      --driver-class-path "$DISTRIBUTARY_JARS/*" "$@"
    ;;
  executor)
    # SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, …: an option each, which may have blanks in it.
    options=()
    for ((i = 0; ; i++)); do
      name=SPARK_JAVA_OPT_$i
      [ -n "${!name+set}" ] || break
      options+=("${!name}")
    done
    # Spark's own jars first: what others bring along in other versions must not hide them.
    path="$(find_spark_home.py)/jars/*:$DISTRIBUTARY_JARS/*"
    exec java ${options[@]+"${options[@]}"} "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
      -cp "${SPARK_CONF_DIR:+$SPARK_CONF_DIR:}$path${SPARK_CLASSPATH:+:$SPARK_CLASSPATH}" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
      --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
  *)
    exec python -m distributary "$@"
    ;;
esac
