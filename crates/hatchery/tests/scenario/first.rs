use roost_cds::JobStatus;

use crate::lab::Lab;

#[tokio::test(start_paused = true)]
async fn a_job_gets_a_worker_and_nothing_is_left() {
    let lab = Lab::new().await;
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    lab.wait_until_clean(0).await;
}
